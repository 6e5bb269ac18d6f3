internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Converts a logo detector to a Core ML pipeline: a neural network that scans an image pyramid, and non-maximum suppression.
///
/// A Core ML network has inputs of fixed sizes, so the image is a square of the size of the largest pyramid level.
///
/// Source: Model.proto, NeuralNetwork.proto and NonMaximumSuppression.proto of coremltools.
struct CoreMLDetectorExporter {
    /// The names of the arrays between the models of the pipeline, of its inputs and of its outputs.
    enum Name {
        static let rawConfidence = "rawConfidence"
        static let rawCoordinates = "rawCoordinates"
        static let confidence = "confidence"
        static let coordinates = "coordinates"
        static let overlapThreshold = "iouThreshold"
        static let confidenceThreshold = "confidenceThreshold"
    }

    /// A pyramid level: its side in pixels, and its network.
    private struct Level {
        let side: Int
        let network: Network
        /// The shape of the output of the network.
        var map: TensorShape { network.output }
    }

    let file: ModelFile
    let detector: DetectorHead
    let options: CoreMLOptions
    private let levels: [Level]
    private(set) var layers: CoreMLLayerWriter

    /// Encodes the message Model.
    static func message(
        _ file: ModelFile, _ detector: DetectorHead, _ options: CoreMLOptions
    ) throws -> MessageBuilder {
        var exporter = try CoreMLDetectorExporter(file, detector, options)
        try exporter.addLevels()
        return try exporter.pipeline()
    }

    private init(_ file: ModelFile, _ detector: DetectorHead, _ options: CoreMLOptions) throws {
        guard !options.isUpdatable else {
            throw ExportError.Problem.notUpdatable(reason: "it is a logo detector, which has no class label to learn")
        }
        self.file = file
        self.detector = detector
        self.options = options
        layers = CoreMLLayerWriter(
            names: ExportedNames(reserving: [CoreMLExporter.image, Name.rawConfidence, Name.rawCoordinates, ""]))
        levels = try detector.levels.map { level throws(ExportError.Problem) in
            let cells = max(Int((Float(level) / Float(detector.stride)).rounded()), 2)
            return try Self.level(file, side: cells * detector.stride)
        }
    }

    private static func level(_ file: ModelFile, side: Int) throws(ExportError.Problem) -> Level {
        let shape = TensorShape(height: side, width: side, channels: 3)
        let network: Network
        do throws(NetworkError) {
            network = try Network(name: file.network.name, input: shape, nodes: file.network.nodes)
        } catch {
            throw .pyramidLevel(side: side, reason: "\(error)".clause)
        }
        guard ParameterLayout(network) == file.parameters.layout else {
            throw .pyramidLevel(side: side, reason: "its parameters have other shapes for this size")
        }
        // These layers are only exported with five axes, as for classifiers, but the layers of the scan need four.
        let unsupported = network.nodes.filter { $0.layer is Dense || $0.layer is Flatten || $0.layer is Softmax }
        guard unsupported.isEmpty else {
            throw .unsupported(
                format: "Core ML",
                layers: unsupported.map { node in
                    UnsupportedLayer(
                        node: node.name, kind: type(of: node.layer).kind,
                        reason: "Imprint exports it to Core ML only for classifiers")
                })
        }
        return Level(side: side, network: network)
    }

    /// The side of the input image, in pixels.
    var side: Int { levels.map(\.side).max() ?? 0 }
    /// The number of positions on all levels.
    var positions: Int { levels.reduce(0) { $0 + $1.map.pixels } }
}

// MARK: Network

extension CoreMLDetectorExporter {
    /// Adds the scan of all levels, with the outputs `rawConfidence` [positions, logos] and `rawCoordinates` [positions, 4].
    private mutating func addLevels() throws {
        // A network for the input image writes the preprocessing.
        var first = exporter(levels[0].network)
        let image = first.addFirstScale()
        layers = first.layers
        var (confidences, boxes): ([String], [String]) = ([], [])
        for level in levels {
            let prefix = "level\(level.side)/"
            let scaled = level.side == side ? image : addScaled(image, to: level.side, prefix)
            var network = exporter(level.network)
            let output = layers.unique("\(prefix)output")
            network.layers = layers
            try network.addLayers(to: scaled, prefix: prefix, output: output)
            layers = network.layers
            confidences.append(addConfidences(output, level, prefix))
            boxes.append(addBoxes(output, level, prefix))
        }
        join(confidences, to: Name.rawConfidence)
        join(boxes, to: Name.rawCoordinates)
    }

    /// The message NeuralNetworkPreprocessing.
    var scaler: MessageBuilder { exporter(levels[0].network).scaler }

    private func exporter(_ network: Network) -> CoreMLExporter {
        CoreMLExporter(
            ExportedModel(
                file, network: network, storagePrecision: options.storagePrecision,
                keepsInt8Layers: options.keepsInt8Layers),
            options, layers: layers)
    }

    /// Adds a layer with one output, whose name is similar to `name`.
    private mutating func add(
        _ kind: CoreMLLayerWriter.Kind, _ inputs: [String], _ parameters: MessageBuilder = MessageBuilder(),
        named name: String
    ) -> String {
        let name = layers.unique(name)
        layers.add(kind, name, inputs, parameters)
        return name
    }

    /// Adds a constant array.
    private mutating func constant(_ shape: [Int], named name: String, _ values: @escaping () -> [Float]) -> String {
        var parameters = MessageBuilder()
        parameters.add(1, packed: shape)
        parameters.add(2, layers.weights(ExportedTensor(name, shape: shape, values: values)))
        return add(.constant, [], parameters, named: name)
    }

    /// Concatenates matrices of all levels along the positions.
    private mutating func join(_ matrices: [String], to output: String) {
        guard matrices.count > 1 else {
            layers.add(.linear, output, matrices[0], [1, 0])
            return
        }
        var parameters = MessageBuilder()
        parameters.add(1, 0)
        layers.add(.concatArrays, output, matrices, parameters)
    }

    /// Adds the reduction of the image with the filter F of `CropAndScale`: F · image · Fᵀ, for each channel.
    private mutating func addScaled(_ image: String, to target: Int, _ prefix: String) -> String {
        let side = side
        let filter = constant([1, 1, target, side], named: "\(prefix)filter") {
            ResampledAxis(length: side, target: target).matrix(length: side)
        }
        let rows = add(.matrixProduct, [filter, image], named: "\(prefix)rows")
        var parameters = MessageBuilder()
        parameters.add(2, true)
        return add(.matrixProduct, [rows, filter], parameters, named: "\(prefix)image")
    }

    /// Adds the confidences at the peaks of the heat maps, and 0 at other positions.
    ///
    /// All logos have the same box at a position. So only the logo with the highest confidence counts, and the confidences of a position
    /// do not exceed 1, as Vision requires.
    private mutating func addConfidences(_ output: String, _ level: Level, _ prefix: String) -> String {
        let logos = detector.logos.count
        let maps = addChannels(0..<logos, of: output, level, named: "\(prefix)maps")
        let highest = [("rows", [3, 1], [(1, 1), (0, 0)]), ("columns", [1, 3], [(0, 0), (1, 1)])].map {
            name, kernel, padding in
            var parameters = MessageBuilder()
            parameters.add(1, 0)
            parameters.add(10, packed: kernel)
            parameters.add(20, packed: [1, 1])
            var borders = MessageBuilder()
            for (start, end) in padding {
                var edges = MessageBuilder()
                edges.add(1, start)
                edges.add(2, end)
                borders.add(10, edges)
            }
            var valid = MessageBuilder()
            valid.add(1, borders)
            parameters.add(30, valid)
            return add(.pooling, [maps], parameters, named: "\(prefix)highest.\(name)")
        }
        let maximum = add(.maximum, highest, named: "\(prefix)highest")
        let isPeak = add(.greaterEqual, [maps, maximum], named: "\(prefix)isPeak")
        let odds = addScale(
            maps, scale: ([logos], detector.logos.map(\.slope)), bias: ([logos], detector.logos.map(\.offset)),
            named: "\(prefix)odds")
        let sigmoid = layers.unique("\(prefix)sigmoid")
        layers.add(.sigmoid, sigmoid, odds)
        var confidences = add(.multiply, [sigmoid, isPeak], named: "\(prefix)confidences")
        if logos > 1 {
            var parameters = MessageBuilder()
            parameters.add(1, packed: [1])
            parameters.add(2, true)
            let best = add(.reduceMaximum, [confidences], parameters, named: "\(prefix)best")
            let isBest = add(.greaterEqual, [confidences, best], named: "\(prefix)isBest")
            confidences = add(.multiply, [confidences, isBest], named: "\(prefix)bestConfidences")
        }
        return addRows(confidences, level, columns: logos, named: "\(prefix)confidenceRows")
    }

    /// Adds the boxes at all positions: the centres, widths and heights, relative to the image.
    private mutating func addBoxes(_ output: String, _ level: Level, _ prefix: String) -> String {
        let (map, logos) = (level.map, detector.logos.count)
        let (step, side) = (Float(detector.stride) / Float(level.side), Float(level.side))
        let span = detector.span / side
        let (rows, columns) = (map.height, map.width)
        // The first position is centred on the first pixel.
        let start = 0.5 / side
        let horizontal = (0..<columns).map { start + Float($0) * step }
        let vertical = (0..<rows).map { start + Float($0) * step }
        guard detector.regressesBoxes else {
            return constant([rows * columns, 4], named: "\(prefix)boxes") {
                vertical.flatMap { y in horizontal.flatMap { x in [x, y, span, span] } }
            }
        }
        let centers =
            vertical.flatMap { _ in horizontal } + vertical.flatMap { [Float](repeating: $0, count: columns) }
        let offsets = addChannels(logos..<(logos + 2), of: output, level, named: "\(prefix)offsets")
        let center = addScale(
            offsets, scale: ([1], [step]), bias: ([2, rows, columns], centers), named: "\(prefix)centers")
        let logarithms = addChannels((logos + 2)..<(logos + 4), of: output, level, named: "\(prefix)logarithms")
        var limits = MessageBuilder()
        limits.add(1, -BoxCode.maximumLogarithm)
        limits.add(2, BoxCode.maximumLogarithm)
        let limited = add(.clip, [logarithms], limits, named: "\(prefix)limited")
        // exp(x + ln(span)).
        var exponential = MessageBuilder()
        exponential.add(1, 4)
        exponential.add(4, logf(span))
        exponential.add(5, Float(1))
        let size = add(.unary, [limited], exponential, named: "\(prefix)sizes")
        let boxes = add(.concat, [center, size], named: "\(prefix)boxes")
        return addRows(boxes, level, columns: 4, named: "\(prefix)boxRows")
    }

    /// Adds a slice of channels, unless the range contains all of them.
    private mutating func addChannels(
        _ range: Range<Int>, of output: String, _ level: Level, named name: String
    ) -> String {
        guard range.count < level.map.channels else { return output }
        var parameters = MessageBuilder()
        parameters.add(1, range.lowerBound)
        parameters.add(2, range.upperBound)
        parameters.add(3, 1)
        parameters.add(4, 0)
        return add(.slice, [output], parameters, named: name)
    }

    /// Adds y = scale · x + bias.
    private mutating func addScale(
        _ input: String, scale: (shape: [Int], values: [Float]), bias: (shape: [Int], values: [Float]),
        named name: String
    ) -> String {
        var parameters = MessageBuilder()
        parameters.add(1, packed: scale.shape)
        parameters.add(2, layers.weights(ExportedTensor("\(name).scale", shape: scale.shape) { scale.values }))
        parameters.add(3, true)
        parameters.add(4, packed: bias.shape)
        parameters.add(5, layers.weights(ExportedTensor("\(name).bias", shape: bias.shape) { bias.values }))
        return add(.scale, [input], parameters, named: name)
    }

    /// Adds a matrix [positions, columns] with the values of an image [1, columns, height, width].
    private mutating func addRows(_ image: String, _ level: Level, columns: Int, named name: String) -> String {
        var axes = MessageBuilder()
        axes.add(1, packed: [0, 2, 3, 1])
        let channelsLast = add(.transpose, [image], axes, named: "\(name).channelsLast")
        var shape = MessageBuilder()
        shape.add(1, packed: [level.map.pixels, columns])
        return add(.reshape, [channelsLast], shape, named: name)
    }
}
