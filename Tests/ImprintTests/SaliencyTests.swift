import ImprintImages
import ImprintModel
import ImprintNetwork
import Testing

@testable import Imprint

@Suite("Saliency") struct SaliencyTests {
    /// Returns a model whose confidence in "bright" increases with the brightness of the pixels in `block`, and depends on no others.
    private func model(
        width: Int, height: Int, block: (columns: Range<Int>, rows: Range<Int>), channels: Int = 3
    ) throws -> ModelFile {
        var net = NetworkBuilder(
            name: "block", input: TensorShape(height: height, width: width, channels: channels))
        net.add(Flatten())
        net.add(Dense(outputChannels: 2), named: "head")
        net.add(Softmax())
        let network = try net.network()
        let parameters = try Parameters(ParameterLayout(network))
        var weights = [Float](repeating: 0, count: width * height * channels * 2)
        for y in block.rows {
            for x in block.columns {
                for channel in 0..<channels {
                    weights[((y * width + x) * channels + channel) * 2 + 1] =
                        4 / Float(block.columns.count * block.rows.count * channels)
                }
            }
        }
        parameters["head.weight"] = weights
        return ModelFile(
            network: network, parameters: parameters, labels: ["dark", "bright"],
            preprocessing: Preprocessing(width: width, height: height, channels: channels))
    }

    @Test(
        "The saliency is high in the block that the model depends on, and 0 far from it",
        arguments: [(30, 30, 3), (40, 20, 3), (20, 50, 1), (10, 10, 3)])
    func block(width: Int, height: Int, channels: Int) throws {
        let side = min(width, height) / 5
        let block = (columns: side..<(2 * side), rows: (height - 2 * side)..<(height - side))
        let model = try model(width: width, height: height, block: block, channels: channels)
        let image = RasterImage(width: width, height: height, filledWith: 255)
        let map = try ImageClassifier(model).saliency(of: image)
        #expect(map.label == "bright" && map.width == width && map.height == height)
        #expect(map.values.count == width * height && map.values.allSatisfy { (0...1).contains($0) })
        // One occlusion square covers the whole block, which changes the confidence from e⁴ / (1 + e⁴) to a half.
        #expect(abs(map.confidence - 0.98201) < 1e-4)
        #expect(abs(map.maximum - 0.48201) < 1e-4 && map.values.allSatisfy { $0 <= map.maximum })
        let best = try #require(map.values.indices.max { map.values[$0] < map.values[$1] })
        #expect(block.columns.contains(best % width) && block.rows.contains(best / width))
        // Squares that are centred two squares away do not cover the block.
        for y in 0..<height {
            for x in 0..<width where x >= block.columns.upperBound + side || y < block.rows.lowerBound - side {
                #expect(map.values[y * width + x] == 0, "at \(x), \(y)")
            }
        }
    }

    @Test("The saliency is 0 for a label whose confidence only rises if the block is occluded") func other() throws {
        let model = try model(width: 20, height: 20, block: (4..<8, 4..<8))
        let map = try ImageClassifier(model).saliency(
            of: RasterImage(width: 64, height: 64, filledWith: 255), for: "dark")
        #expect(map.label == "dark" && abs(map.confidence - 0.01799) < 1e-4)
        #expect(map.values.allSatisfy { $0 == 0 } && map.maximum == 0)
    }

    @Test(
        "A side has 9 positions of the square if it is a multiple of 5 pixels, and 10 for other common sizes",
        arguments: [(20, 9), (25, 9), (160, 9), (300, 9), (96, 10), (224, 10), (299, 10)])
    func positions(length: Int, count: Int) {
        let side = length / 5
        let squares = Occlusion.squares(side, along: length)
        #expect(squares.count == count)
        #expect(squares.first?.lowerBound == 0 && squares.last?.upperBound == length)
        let steps = zip(squares, squares.dropFirst()).map { $1.lowerBound - $0.lowerBound }
        // Half of the side, rounded up to a pixel.
        #expect(squares.allSatisfy { $0.count == side } && steps.allSatisfy { $0 <= (side + 1) / 2 })
    }

    @Test("The map is bitwise identical for any number of threads") func threads() throws {
        let model = try model(width: 25, height: 25, block: (0..<20, 3..<20))
        var image = RasterImage(width: 25, height: 25)
        for sample in image.samples.indices { image.samples[sample] = UInt8(sample * 37 % 256) }
        let maps = try [1, 2, 4].map { try ImageClassifier(model, threads: $0).saliency(of: image) }
        #expect(maps[1] == maps[0] && maps[2] == maps[0])
    }

    @Test("Inputs of a few pixels have a map", arguments: [(1, 1), (1, 7), (2, 3), (5, 5)])
    func tiny(width: Int, height: Int) throws {
        let model = try model(width: width, height: height, block: (0..<width, 0..<height))
        let map = try ImageClassifier(model).saliency(of: RasterImage(width: 9, height: 9, filledWith: 255))
        #expect(map.values.count == width * height && map.values.allSatisfy { $0 > 0 && $0 <= 1 })
    }

    @Test("A saliency map fails if the model's output is not finite") func overflow() throws {
        let model = try model(width: 10, height: 10, block: (0..<2, 0..<2))
        model.parameters["head.weight"] = [Float](repeating: .greatestFiniteMagnitude, count: 600)
        let classifier = try ImageClassifier(model)
        #expect(throws: ImprintError.nonFiniteOutput(network: "block")) {
            try classifier.saliency(of: RasterImage(width: 10, height: 10, filledWith: 255))
        }
    }

    @Test("A saliency map for an unknown label is an error") func unknownLabel() throws {
        let classifier = try ImageClassifier(model(width: 10, height: 10, block: (0..<2, 0..<2)))
        #expect(throws: ImprintError.unknownLabel("other", known: classifier.labels)) {
            try classifier.saliency(of: RasterImage(width: 10, height: 10, filledWith: 255), for: "other")
        }
    }
}
