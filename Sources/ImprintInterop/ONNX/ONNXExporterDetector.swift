internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

// The export of a logo detector: the scan of an image pyramid as one graph.

extension ONNXExporter {
    /// The outputs of the graph of a logo detector.
    enum DetectorOutput: String, CaseIterable {
        case boxes, confidences, labels, imageConfidences
    }

    /// The peaks of the heat maps at all positions, which form the axis "positions".
    struct Peaks {
        /// The log-odds of the logos, [1, logos, positions]; the lowest number at positions without a peak.
        let odds: String
        /// The left, top, right and bottom edges in pixels of the shrunk image, [1, 4, positions].
        let boxes: String
    }

    /// An image in the graph.
    struct PyramidImage {
        /// The samples 0…255, [1, 3, height, width].
        let samples: String
        /// The height and width as integers, [2].
        let sides: String
        /// The height and width as floating-point numbers, [2].
        let floatSides: String
    }

    /// Encodes the message ModelProto of a logo detector.
    static func message(
        _ file: ModelFile, _ detector: DetectorHead, _ options: ONNXOptions
    ) throws -> MessageBuilder {
        let network = try sizeIndependentNetwork(of: file, stride: detector.stride)
        var options = options
        options.containsPreprocessing = true
        var exporter = ONNXExporter(
            ExportedModel(
                file, network: network, storagePrecision: options.storagePrecision,
                keepsInt8Layers: options.keepsInt8Layers),
            options, opset: 18, reserving: DetectorOutput.allCases.map(\.rawValue))
        return try exporter.detectorMessage(detector)
    }

    private mutating func detectorMessage(_ detector: DetectorHead) throws -> MessageBuilder {
        let photo = pyramidImage(Network.inputName)
        let shrunk = addShrunk(photo)
        let levels = try detector.levels.map { side throws(ExportError.Problem) in
            try addPeaks(of: shrunk, level: side, detector)
        }
        let peaks = Peaks(
            odds: graph.node("Concat", levels.map(\.odds), ["axis": .int(2)], named: "odds"),
            boxes: graph.node("Concat", levels.map(\.boxes), ["axis": .int(2)], named: "peakBoxes"))
        addImageConfidences(peaks, detector)
        addObjects(peaks, detector, photo: photo, shrunk: shrunk)
        let outputs = DetectorOutput.allCases.map { output in
            switch output {
            case .boxes: ONNXGraph.Output(name: output.rawValue, shape: [.name("objects"), .number(4)])
            case .confidences: ONNXGraph.Output(name: output.rawValue, shape: [.name("objects")])
            case .labels: ONNXGraph.Output(name: output.rawValue, type: .int64, shape: [.name("objects")])
            case .imageConfidences:
                ONNXGraph.Output(name: output.rawValue, shape: [.number(model.file.labels.count)])
            }
        }
        return try message(
            kind: "Logo detector", input: [.number(1), .number(3), .name("height"), .name("width")], outputs: outputs,
            extra: [(ModelFileKey.detector, try json(detector))])
    }
}

// MARK: Images of any size

extension ONNXExporter {
    /// Returns the network for images of a size that pyramid levels may have.
    ///
    /// Attributes of operators, such as padding, are constants in the graph, so this method checks that they do not depend on the
    /// size.
    /// - Throws: `ExportError.Problem.unsupported` with the layers whose operators depend on the size of the image.
    private static func sizeIndependentNetwork(of file: ModelFile, stride: Int) throws -> Network {
        var reference: (network: Network, layers: [[UInt8]])?
        // These sizes have all remainders modulo the stride of a layer.
        for cells in 2...33 {
            let shape = TensorShape(height: cells * stride, width: cells * stride, channels: 3)
            guard
                let network = try? Network(name: file.network.name, input: shape, nodes: file.network.nodes),
                ParameterLayout(network) == file.parameters.layout
            else { continue }
            let layers = try encodedLayers(of: file, network)
            guard let reference else {
                reference = (network, layers)
                continue
            }
            let different = network.nodes.indices.filter { layers[$0] != reference.layers[$0] }
            guard different.isEmpty else {
                throw ExportError.Problem.unsupported(
                    format: "ONNX",
                    layers: different.map { index in
                        UnsupportedLayer(
                            node: network.nodes[index].name, kind: type(of: network.nodes[index].layer).kind,
                            reason: "its padding depends on the size of the image")
                    })
            }
        }
        guard let reference else {
            throw ExportError.Problem.pyramidLevel(
                side: 33 * stride, reason: "its layers or parameters have other shapes")
        }
        return reference.network
    }

    /// Returns the operators of each layer of a network, without parameters.
    private static func encodedLayers(of file: ModelFile, _ network: Network) throws -> [[UInt8]] {
        var exporter = ONNXExporter(
            ExportedModel(file, network: network, storagePrecision: .float32), ONNXOptions(), opset: 18, reserving: [])
        var graphs: [ONNXGraph] = []
        _ = try exporter.addLayers(
            to: Value(name: Network.inputName, shape: network.input, isFlat: false), prefix: "level/",
            onLayer: { graphs.append($0) })
        graphs.append(exporter.graph)
        return zip(graphs, graphs.dropFirst()).map { before, after in after.immediateBytes(after: before.count) }
    }
}

// MARK: Image pyramid

extension ONNXExporter {
    /// Returns an image with its height and width.
    private mutating func pyramidImage(_ samples: String) -> PyramidImage {
        let shape = graph.node("Shape", [samples], ["start": .int(2)], named: "\(samples).sides")
        return PyramidImage(samples: samples, sides: shape, floatSides: float(shape))
    }

    /// Returns integers as floating-point numbers.
    private mutating func float(_ integers: String) -> String {
        graph.node("Cast", [integers], ["to": .int(ONNXGraph.ElementType.float.rawValue)], named: "\(integers).float")
    }

    /// Returns the name of a scalar constant, which broadcasts to vectors.
    mutating func number(_ name: String, _ value: Float) -> String { graph.add(name, [value], shape: []) }

    /// Returns the square root of the number of pixels.
    private mutating func meanSide(_ image: PyramidImage, named name: String) -> String {
        let area = graph.node("ReduceProd", [image.floatSides], named: "\(name).area")
        return graph.node("Sqrt", [area], named: "\(name).meanSide")
    }

    /// Returns positive numbers as integers, rounded to the nearest and at least `minimum`.
    private mutating func rounded(_ values: String, atLeast minimum: Float, named name: String) -> String {
        let shifted = graph.node("Add", [values, number("\(name).half", 0.5)], named: "\(name).shifted")
        let floor = graph.node("Floor", [shifted], named: "\(name).floor")
        let limited = graph.node("Max", [floor, number("\(name).minimum", minimum)], named: "\(name).limited")
        return graph.node("Cast", [limited], ["to": .int(ONNXGraph.ElementType.int64.rawValue)], named: name)
    }

    /// Adds the reduction of photos to the number of pixels that Imprint stores (`PatchSource.shrunk`).
    private mutating func addShrunk(_ photo: PyramidImage) -> PyramidImage {
        let limit = number("shrunk.limit", Float(PatchSource.maximumSide))
        let wanted = graph.node("Div", [limit, meanSide(photo, named: "shrunk")], named: "shrunk.wantedFactor")
        let factor = graph.node("Min", [wanted, number("shrunk.one", 1)], named: "shrunk.factor")
        let scaled = graph.node("Mul", [photo.floatSides, factor], named: "shrunk.scaledSides")
        return addResized(photo, to: rounded(scaled, atLeast: 1, named: "shrunk.sides"), named: "shrunk")
    }

    /// Scales an image with the antialiased bilinear filter of `CropAndScale`, and rounds the samples to integers.
    private mutating func addResized(_ image: PyramidImage, to sides: String, named name: String) -> PyramidImage {
        let planes = graph.add("\(name).planes", [1, 3])
        let shape = graph.node("Concat", [planes, sides], ["axis": .int(0)], named: "\(name).shape")
        // Pixels outside of the image have no weight.
        let scaled = graph.node(
            "Resize", [image.samples, "", "", shape],
            [
                "antialias": .int(1), "coordinate_transformation_mode": .string("half_pixel"),
                "exclude_outside": .int(1), "mode": .string("linear"),
            ], named: "\(name).scaled")
        let shifted = graph.node("Add", [scaled, number("\(name).rounding", 0.5)], named: "\(name).shifted")
        let samples = graph.node("Floor", [shifted], named: "\(name).samples")
        return PyramidImage(samples: samples, sides: sides, floatSides: float(sides))
    }

    /// Adds the scaling of an image to a pyramid level, as in `AnySizeNetwork`.
    private mutating func addLevel(_ image: PyramidImage, side: Int, stride: Int, named name: String) -> PyramidImage {
        let root = meanSide(image, named: name)
        let factor = graph.node("Div", [number("\(name).side", Float(side)), root], named: "\(name).factor")
        let scaled = graph.node("Mul", [image.floatSides, factor], named: "\(name).scaledSides")
        let fractions = graph.node(
            "Div", [scaled, number("\(name).stride", Float(stride))], named: "\(name).fractions")
        let cells = rounded(fractions, atLeast: 2, named: "\(name).cells")
        // Very long images are compressed.
        let shortSide = graph.node("ReduceMin", [cells], named: "\(name).shortSide")
        let step = graph.add("\(name).step", [stride])
        let quotient = graph.node(
            "Div", [graph.add("\(name).doubleArea", [2 * side * side / (stride * stride)]), shortSide],
            named: "\(name).quotient")
        let limit = graph.node("Max", [quotient, graph.add("\(name).minimumLimit", [2])], named: "\(name).limit")
        let limited = graph.node("Min", [cells, limit], named: "\(name).limitedCells")
        return addResized(image, to: graph.node("Mul", [limited, step], named: "\(name).sides"), named: name)
    }
}

// MARK: Peaks of a level

extension ONNXExporter {
    /// Adds the network and the decoding of its output for a pyramid level.
    private mutating func addPeaks(
        of image: PyramidImage, level side: Int, _ detector: DetectorHead
    ) throws(ExportError.Problem) -> Peaks {
        let prefix = "level\(side)/"
        let level = addLevel(image, side: side, stride: detector.stride, named: "\(prefix)image")
        let samples = Value(name: level.samples, shape: model.network.input, isFlat: false)
        let output = self.image(try addLayers(to: normalized(samples, prefix: prefix), prefix: prefix)).name
        let logos = detector.logos.count
        let maps = detector.regressesBoxes ? channels(0..<logos, of: output, named: "\(prefix)maps") : output
        let codes = detector.regressesBoxes ? output : nil
        return Peaks(
            odds: addPeakOdds(maps, detector, prefix),
            boxes: addBoxes(codes, maps, detector, from: image, level: level, prefix))
    }

    /// Adds a slice of channels.
    private mutating func channels(_ range: Range<Int>, of image: String, named name: String) -> String {
        let bounds = [("start", range.lowerBound), ("end", range.upperBound), ("axis", 1)].map {
            graph.add("\(name).\($0.0)", [$0.1])
        }
        return graph.node("Slice", [image] + bounds, named: name)
    }

    /// Adds the log-odds slope · logit + offset of local maxima, [1, logos, positions].
    private mutating func addPeakOdds(_ maps: String, _ detector: DetectorHead, _ prefix: String) -> String {
        func column(_ name: String, _ values: [Float]) -> ExportedTensor {
            ExportedTensor(name, shape: [values.count, 1, 1]) { values }
        }
        let scaled = graph.node(
            "Mul", [maps, graph.add(column("calibrationSlopes", detector.logos.map(\.slope)))], named: "\(prefix)scaled"
        )
        let odds = graph.node(
            "Add", [scaled, graph.add(column("calibrationOffsets", detector.logos.map(\.offset)))],
            named: "\(prefix)allOdds")
        let sides = [("rows", [3, 1], [1, 0, 1, 0]), ("columns", [1, 3], [0, 1, 0, 1])].map { name, kernel, pads in
            graph.node(
                "MaxPool", [maps], ["kernel_shape": .ints(kernel), "pads": .ints(pads), "strides": .ints([1, 1])],
                named: "\(prefix)highest.\(name)")
        }
        let highest = graph.node("Max", sides, named: "\(prefix)highest")
        let isPeak = graph.node("GreaterOrEqual", [maps, highest], named: "\(prefix)isPeak")
        let lowest = number("\(prefix)lowest", -.greatestFiniteMagnitude)
        let peaks = graph.node("Where", [isPeak, odds, lowest], named: "\(prefix)peaks")
        return positions(peaks, channels: detector.logos.count, named: "\(prefix)odds")
    }

    /// Adds a reshape of [1, channels, rows, columns] to [1, channels, positions].
    private mutating func positions(_ map: String, channels: Int, named name: String) -> String {
        graph.node("Reshape", [map, graph.add("\(name).shape", [1, channels, -1])], named: name)
    }

    /// Adds the boxes at all positions, in pixels of the image, [1, 4, positions].
    /// - Parameter codes: The output of the network with `BoxCode` after the heat maps; nil without box regression.
    private mutating func addBoxes(
        _ codes: String?, _ maps: String, _ detector: DetectorHead, from image: PyramidImage, level: PyramidImage,
        _ prefix: String
    ) -> String {
        // The pixels of the image per pixel of the level: width, then height.
        let factors = graph.node("Div", [image.floatSides, level.floatSides], named: "\(prefix)factors")
        let reversed = graph.node(
            "Gather", [factors, graph.add("\(prefix)reversed", [1, 0])], named: "\(prefix)factorXY")
        let scale = graph.node(
            "Reshape", [reversed, graph.add("\(prefix)column", [2, 1, 1])], named: "\(prefix)scale")
        let stride = number("\(prefix)stride", Float(detector.stride))
        let (half, span) = (number("\(prefix)half", 0.5), number("\(prefix)span", detector.span))
        var cells = addGrid(maps, prefix)
        let size: String
        let logos = detector.logos.count
        if let codes {
            let offsets = channels(logos..<(logos + 2), of: codes, named: "\(prefix)offsets")
            cells = graph.node("Add", [cells, offsets], named: "\(prefix)cells")
            let limits = [-BoxCode.maximumLogarithm, BoxCode.maximumLogarithm].map { number("\(prefix)limit", $0) }
            let logarithms = channels((logos + 2)..<(logos + 4), of: codes, named: "\(prefix)logarithms")
            let limited = graph.node("Clip", [logarithms] + limits, named: "\(prefix)limited")
            let sides = graph.node("Exp", [limited], named: "\(prefix)relativeSides")
            let levelSides = graph.node("Mul", [sides, span], named: "\(prefix)levelSides")
            size = graph.node("Mul", [levelSides, scale], named: "\(prefix)size")
        } else {
            size = graph.node(
                "Mul", [graph.node("ReduceMean", [scale], named: "\(prefix)mean"), span], named: "\(prefix)size")
        }
        let pixels = graph.node("Mul", [cells, stride], named: "\(prefix)pixels")
        let centers = graph.node("Add", [pixels, half], named: "\(prefix)levelCenter")
        let center = graph.node("Mul", [centers, scale], named: "\(prefix)center")
        let reach = graph.node("Mul", [size, half], named: "\(prefix)reach")
        let edges = [
            graph.node("Sub", [center, reach], named: "\(prefix)leftTop"),
            graph.node("Add", [center, reach], named: "\(prefix)rightBottom"),
        ]
        let boxes = graph.node("Concat", edges, ["axis": .int(1)], named: "\(prefix)edges")
        return positions(boxes, channels: 4, named: "\(prefix)boxes")
    }

    /// Adds the column and row of each position of a map, [1, 2, rows, columns].
    private mutating func addGrid(_ maps: String, _ prefix: String) -> String {
        let sides = graph.node("Shape", [maps], ["start": .int(2)], named: "\(prefix)mapSides")
        let one = graph.add("\(prefix)one", [1, 1])
        let shape = graph.node("Concat", [one, sides], ["axis": .int(0)], named: "\(prefix)gridShape")
        let axes = [("columns", 1, [1, 1, 1, -1]), ("rows", 0, [1, 1, -1, 1])].map { name, axis, ends in
            let count = graph.node(
                "Gather", [sides, graph.add("\(prefix)\(name).axis", [axis], shape: [])],
                named: "\(prefix)\(name).count")
            let bounds = [("first", 0), ("step", 1)].map { graph.add("\(prefix)\(name).\($0.0)", [$0.1], shape: []) }
            let indices = graph.node("Range", [bounds[0], count, bounds[1]], named: "\(prefix)\(name).indices")
            let axis = graph.node(
                "Reshape", [float(indices), graph.add("\(prefix)\(name).shape", ends)], named: "\(prefix)\(name)")
            return graph.node("Expand", [axis, shape], named: "\(prefix)\(name).expanded")
        }
        return graph.node("Concat", axes, ["axis": .int(1)], named: "\(prefix)grid")
    }
}
