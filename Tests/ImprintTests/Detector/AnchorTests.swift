import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import Testing

/// Anchor-based detectors: decoding, averages and padding.
@Suite struct AnchorTests {
    /// Returns a detector for square images with one anchor in each cell of 16x16 pixels.
    ///
    /// The logit of a cell is −10 + 20 · red. Its box is a square of 24 pixels, whose centre green moves to the right by up to 16 pixels.
    private func detector(size: Float = 24, side: Int = 64) throws -> ImageClassifier {
        var net = NetworkBuilder(name: "anchors", input: TensorShape(height: side, width: side, channels: 3))
        let cells = net.add(AveragePool(kernelSize: 16, stride: 16), named: "cells")
        net.add(Convolution(outputChannels: 1, kernelSize: 1), named: "logits", to: [cells])
        net.add(Flatten(), named: "scores")
        let scores = net.add(Sigmoid(), named: "probabilities")
        net.add(Convolution(outputChannels: 5, kernelSize: 1), named: "values", to: [cells])
        let boxes = net.add(Flatten(), named: "boxes")
        net.add(Concat(), named: "output", to: [scores, boxes])
        let network = try net.network()
        let parameters = try Parameters(network, seed: 1)
        parameters["logits.weight"] = [20, 0, 0]
        parameters["logits.bias"] = [-10]
        parameters["values.weight"] =
            [Float](repeating: 0, count: 5) + [16, 0, 0, 0, 0] + [Float](repeating: 0, count: 5)
        parameters["values.bias"] = [0, 0, size, size, 7]
        var preprocessing = Preprocessing(width: side, height: side, cropAndScale: .scaleFit)
        (preprocessing.mean, preprocessing.scale) = ([0, 0, 0], [1 / 255, 1 / 255, 1 / 255])
        return try ImageClassifier(
            ModelFile(
                network: network, parameters: parameters, labels: ["face"], preprocessing: preprocessing,
                anchors: AnchorHead(
                    levels: [.init(stride: 16, anchors: 1)], valuesPerAnchor: 5, iouThreshold: 0.3)))
    }

    /// Whether a box is as expected, in pixels of an image with a width of 64 pixels.
    private func isClose(_ box: NormalizedRectangle, _ pixels: [Float], height: Float = 64) -> Bool {
        let found = [box.x * 64, box.y * height, box.width * 64, box.height * height]
        return zip(found, pixels).allSatisfy { abs($0 - $1) < 0.05 }
    }

    @Test("A box is at the centre of its anchor plus the offset, and clipped to the image") func decoding() throws {
        let image = cellImage(
            width: 64, height: 64, cell: 16, [PaintedCell(1, 2, [255, 0, 0]), PaintedCell(3, 0, [230, 0, 0])])
        let objects = try detector().detect(image)
        try #require(objects.count == 2)
        // The first center is (40, 24), the second (8, 56).
        #expect(isClose(objects[0].box, [28, 12, 24, 24]))
        #expect(isClose(objects[1].box, [0, 44, 20, 20]))
        #expect(objects[0].confidence > 0.9999 && objects[0].confidence > objects[1].confidence)
        let classification = try detector().classify(image)[0]
        #expect(classification.confidence == objects[0].confidence && classification.box == objects[0].box)
    }

    @Test("Overlapping boxes are averaged, unless they are weaker than 0.5") func averages() throws {
        // Green moves the first box by 8 pixels to the right.
        let both = cellImage(
            width: 64, height: 64, cell: 16, [PaintedCell(1, 1, [255, 128, 0]), PaintedCell(1, 2, [255, 0, 0])])
        let objects = try detector().detect(both)
        try #require(objects.count == 1)
        // The mean of 20 and 28 pixels.
        let x: Float = 24.02 / 64
        #expect(abs(objects[0].box.x - x) < 1e-3)
        let weak = cellImage(
            width: 64, height: 64, cell: 16, [PaintedCell(1, 1, [120, 128, 0]), PaintedCell(1, 2, [255, 0, 0])])
        let strongest = try detector().detect(weak)
        #expect(strongest.count == 1 && isClose(strongest[0].box, [28, 12, 24, 24]))
    }

    @Test("The padding of an image is not a part of it") func padding() throws {
        // 64x32 pixels have 16 rows of padding above and below.
        let image = cellImage(width: 64, height: 32, cell: 16, [PaintedCell(0, 2, [255, 0, 0])])
        let objects = try detector().detect(image)
        try #require(objects.count == 1)
        #expect(isClose(objects[0].box, [28, 0, 24, 20], height: 32))
        #expect(try detector().detect(cellImage(width: 1, height: 3000, [])).isEmpty)
    }

    @Test("At most 1,000 objects of a label are returned") func limit() throws {
        var image = RasterImage(width: 640, height: 640)
        for pixel in 0..<(640 * 640) { image.samples[3 * pixel] = 255 }
        #expect(try detector(size: 8, side: 640).detect(image).count == 1000)
    }

    @Test("A box without a positive size, or one that overflows, is never returned with invalid values") func extremes()
        throws
    {
        let image = cellImage(width: 64, height: 64, cell: 16, [PaintedCell(1, 2, [255, 0, 0])])
        for size in [-24, 0] as [Float] { #expect(try detector(size: size).detect(image).isEmpty) }
        #expect(try detector(size: 3e38).detect(image).allSatisfy { $0.box == .all })
        #expect(throws: ImprintError.self) { try detector(size: .infinity).detect(image) }
    }
}
