internal import ImprintModel
internal import ImprintNetwork

// The pipeline of a logo detector: the neural network with the added layers, and non-maximum suppression.

extension CoreMLDetectorExporter {
    /// The minimum confidence of the objects that the pipeline returns, unless the app sets another threshold.
    private static let defaultThreshold = 0.5

    /// The element type of arrays, which non-maximum suppression requires.
    private static let double = 65600

    /// Encodes the message Model.
    func pipeline() throws -> MessageBuilder {
        var pipeline = MessageBuilder()
        pipeline.add(1, networkModel)
        pipeline.add(1, suppressionModel)
        for name in ["network", "suppression"] { pipeline.add(2, name) }

        let model = ExportedModel(file, storagePrecision: options.storagePrecision)
        let metadata = ExportedDetails.coreML(
            file.details, kind: "Logo detector \(file.network.name), exported by Imprint.",
            userDefined: try model.metadata() + [(ModelFileKey.detector, try json(detector))])
        var description = MessageBuilder()
        for input in [imageFeature] + thresholdFeatures { description.add(1, input) }
        for output in outputFeatures { description.add(10, output) }
        description.add(100, metadata)
        return encodedModel(202, pipeline, description)
    }

    /// Encodes a message Model.
    private func encodedModel(_ field: Int, _ content: MessageBuilder, _ description: MessageBuilder) -> MessageBuilder
    {
        var message = MessageBuilder()
        message.add(1, layers.version)
        message.add(2, description)
        message.add(field, content)
        return message
    }

    /// The scan of the image.
    private var networkModel: MessageBuilder {
        var network = MessageBuilder()
        for layer in layers.messages { network.add(1, layer) }
        network.add(2, scaler)
        // Arrays have exactly the axes of the description, and images batch, channels, height and width.
        network.add(5, 1)
        network.add(6, 1)
        var description = MessageBuilder()
        description.add(1, imageFeature)
        for output in rawFeatures { description.add(10, output) }
        return encodedModel(500, network, description)
    }

    /// The selection of objects.
    private var suppressionModel: MessageBuilder {
        var suppression = MessageBuilder()
        var pickTop = MessageBuilder()
        pickTop.add(1, true)
        suppression.add(1, pickTop)
        var labels = MessageBuilder()
        for logo in detector.logos { labels.add(1, logo.label) }
        suppression.add(100, labels)
        suppression.add(110, Double(ObjectSelection.sameLogoOverlap))
        suppression.add(111, Self.defaultThreshold)
        for (field, name) in [
            (200, Name.rawConfidence), (201, Name.rawCoordinates), (202, Name.overlapThreshold),
            (203, Name.confidenceThreshold), (210, Name.confidence), (211, Name.coordinates),
        ] {
            suppression.add(field, name)
        }
        var description = MessageBuilder()
        for input in rawFeatures + thresholdFeatures { description.add(1, input) }
        for output in outputFeatures { description.add(10, output) }
        return encodedModel(610, suppression, description)
    }

    private var imageFeature: MessageBuilder {
        var image = MessageBuilder()
        image.add(1, side)
        image.add(2, side)
        image.add(3, 20)
        return CoreMLExporter.feature(
            CoreMLExporter.image, "The upright image in sRGB, scaled to fit.", type: 4, image)
    }

    private var thresholdFeatures: [MessageBuilder] {
        [
            (Name.overlapThreshold, "The overlap (IoU) at which a box suppresses a weaker one of the same logo."),
            (Name.confidenceThreshold, "The minimum confidence of an object, by default \(Self.defaultThreshold)."),
        ].map { name, text in
            var type = MessageBuilder()
            type.add(2, MessageBuilder())
            type.add(1000, true)
            var message = MessageBuilder()
            message.add(1, name)
            message.add(2, text)
            message.add(3, type)
            return message
        }
    }

    /// The confidences and boxes of all positions.
    private var rawFeatures: [MessageBuilder] {
        [
            (Name.rawConfidence, "The confidence of each logo at each position.", detector.logos.count),
            (Name.rawCoordinates, "The box at each position.", 4),
        ].map { name, text, columns in
            var array = MessageBuilder()
            array.add(1, packed: [positions, columns])
            array.add(2, Self.double)
            return CoreMLExporter.feature(name, text, type: 5, array)
        }
    }

    /// The confidences and boxes of objects, whose number is open.
    private var outputFeatures: [MessageBuilder] {
        [
            (Name.confidence, "The confidence of each logo, for each object.", detector.logos.count),
            (
                Name.coordinates,
                "The horizontal and vertical centre, the width and the height of each object, relative to the image.", 4
            ),
        ].map { name, text, columns in
            var ranges = MessageBuilder()
            for (lower, upper) in [(0, -1), (columns, columns)] {
                var range = MessageBuilder()
                range.add(1, lower)
                range.add(2, upper)
                ranges.add(1, range)
            }
            var array = MessageBuilder()
            array.add(2, Self.double)
            array.add(31, ranges)
            return CoreMLExporter.feature(name, text, type: 5, array)
        }
    }
}
