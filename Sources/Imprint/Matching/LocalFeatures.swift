internal import ImprintCore
package import ImprintImages
package import ImprintModel
package import ImprintNetwork

/// Local features for finding logos from their artwork: one vector for each position of an image.
///
/// The vectors are activations of a pretrained network at one or two depths. Each channel is standardized over drawn patterns to a mean of
/// 0 and a standard deviation of 1, so channels with large values do not outweigh the rest. `LocalFeatures.builtIn()` in ImprintTraining
/// returns the features that come with Imprint, which are trained for logos.
public struct LocalFeatures: Sendable {
    /// The distance between adjacent positions, in pixels.
    package static let stride = 16

    /// The network, whose output has the standardized channels of all depths.
    package let network: Network
    /// The parameters of the network.
    package private(set) var parameters: Parameters
    /// The conversion of images to the network's input; its size does not matter.
    package let preprocessing: Preprocessing
    /// The number of channels of each depth.
    package let channels: [Int]
    /// The calibration of `ArtworkMatcher` for these features, or nil if it was not measured.
    package var calibration: MatchCalibration?

    /// Whether the confidences of `ArtworkMatcher` are calibrated for these features; otherwise they are estimates.
    public var isCalibrated: Bool { calibration != nil }

    /// The name of the node that standardizes the features.
    package static let standardization = "standardized"

    /// Creates the features of a pretrained base model.
    /// - Parameters:
    ///   - base: A base model: a convolutional network for colour images with a feature map of a sixteenth of their size.
    ///   - images: The images over which the features are standardized, with 3 channels and sides that are multiples of 16 pixels.
    /// - Throws: `ImprintError.noLocalFeatures` if the network has no such feature map, `ImprintError.unsupportedImageSize` if it accepts only
    ///   one size, `ImprintError.outOfMemory` and `NetworkError.outOfMemory`.
    package init(_ base: ModelFile, standardizedOver images: [RasterImage]) throws {
        guard base.preprocessing.channels == 3, let part = try base.network.localFeatures(stride: Self.stride) else {
            throw ImprintError.noLocalFeatures(network: base.network.name)
        }
        channels = part.channels
        var preprocessing = base.preprocessing
        (preprocessing.height, preprocessing.width) = (part.network.input.height, part.network.input.width)
        self.preprocessing = preprocessing
        let scale = Network.Node(
            name: Self.standardization, layer: Affine(extent: .channels), inputs: [part.network.nodes.last?.name ?? ""])
        network = try Network(name: base.network.name, input: part.network.input, nodes: part.network.nodes + [scale])
        parameters = try Parameters(ParameterLayout(network))
        parameters.load(from: base.parameters)
        parameters["\(Self.standardization).scale"] = channels.flatMap { [Float](repeating: 1, count: $0) }
        parameters = try standardized(over: images).parameters
    }

    /// Creates the features that `model` stores.
    /// - Returns: nil if the model does not store features.
    package init?(stored model: ModelFile) throws {
        guard let network = try model.network.beforeGlobalAverage(), network.nodes.last?.name == Self.standardization,
            let joined = network.nodes.dropLast().last
        else { return nil }
        self.network = network
        let sources = joined.layer is Concat ? joined.inputs : [joined.name]
        channels = sources.compactMap { name in
            network.nodes.firstIndex { $0.name == name }.map { network.shapes[$0].channels }
        }
        parameters = try Parameters(ParameterLayout(network))
        parameters.load(from: model.parameters)
        preprocessing = model.preprocessing
    }

    /// Returns a model that stores the features: its outputs are their averages over an image.
    package func model(storagePrecision: Safetensors.Precision) throws -> ModelFile {
        let mean = Network.Node(name: "mean", layer: GlobalAveragePool(), inputs: [Self.standardization])
        let network = try Network(name: network.name, input: network.input, nodes: network.nodes + [mean])
        let parameters = try Parameters(ParameterLayout(network))
        parameters.load(from: self.parameters)
        return ModelFile(
            network: network, parameters: parameters, labels: (0..<network.output.channels).map { "\($0)" },
            preprocessing: preprocessing, storagePrecision: storagePrecision)
    }

    /// Returns the features with other parameters of the same network.
    package func with(_ parameters: Parameters) -> LocalFeatures {
        var features = self
        features.parameters = parameters
        features.calibration = nil
        return features
    }

    /// Returns the features with each channel standardized to a mean of 0 and a standard deviation of 1 over images.
    package func standardized(over images: [RasterImage]) throws -> LocalFeatures {
        let names = ("\(Self.standardization).scale", "\(Self.standardization).shift")
        guard let scale = parameters[names.0], let shift = parameters[names.1] else { return self }
        let extractor = extractor(plans: 4)
        var statistics = ChannelStatistics(channels: scale.count)
        for image in images {
            let map = try extractor.run(image)
            withExtendedLifetime(map) { statistics.add(UnsafeBufferPointer(map.values)) }
        }
        guard statistics.count > 0 else { return self }
        let means = statistics.means
        let deviations = statistics.variances.map { $0.squareRoot() }
        // A channel that is almost constant over the images would outweigh all others in a photo in which it varies, so it becomes 0.
        let smallest = deviations.sorted()[deviations.count / 2] / 1000
        let factors = deviations.map { $0 > smallest ? Float(1 / $0) : 0 }
        // A standardized value v becomes (v − mean) / deviation.
        let parameters = try parameters.copy()
        parameters[names.0] = zip(scale, factors).map { $0 * $1 }
        parameters[names.1] = zip(zip(shift, means), factors).map { ($0.0 - Float($0.1)) * $1 }
        return with(parameters)
    }

    /// Creates a feature extractor, for use on one thread at a time.
    /// - Parameter plans: The maximum number of image sizes whose execution plans are cached.
    package func extractor(plans: Int, threads: Int = 1) -> AnySizeNetwork {
        AnySizeNetwork(network, parameters: parameters, preprocessing: preprocessing, plans: plans, threads: threads)
    }
}

/// The local features of one image: a map for each depth.
package struct LocalFeatureMaps: Sendable {
    /// The number of rows and columns.
    package let height: Int
    package let width: Int
    /// The features of each depth, [height, width, channels].
    package let maps: [[Float]]

    /// Creates maps from features.
    package init(_ maps: [[Float]], height: Int, width: Int) {
        (self.maps, self.height, self.width) = (maps, height, width)
    }

    /// Whether all features are finite; activations can overflow even though the parameters are finite.
    package var areFinite: Bool { maps.allSatisfy { $0.allSatisfy(\.isFinite) } }

    /// Copies the features of an image.
    /// - Parameters:
    ///   - output: The output of the network of `LocalFeatures`.
    ///   - channels: The number of channels of each depth.
    ///   - border: The number of rows and columns to leave out on each side.
    package init(_ output: AnySizeNetwork.Map, channels: [Int], border: Int = 0) {
        let (rows, columns) = (output.shape.height - 2 * border, output.shape.width - 2 * border)
        let total = output.shape.channels
        var first = 0
        maps = channels.map { count in
            defer { first += count }
            return [Float](unsafeUninitializedCapacity: rows * columns * count) { values, initialized in
                guard let source = output.values.baseAddress, let target = values.baseAddress else { return }
                for row in 0..<rows {
                    for column in 0..<columns {
                        let position = (row + border) * output.shape.width + column + border
                        (target + (row * columns + column) * count).update(
                            from: source + position * total + first, count: count)
                    }
                }
                initialized = rows * columns * count
            }
        }
        (height, width) = (rows, columns)
    }
}
