import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork

/// The parameters of a center-point detector whose boxes depend on the color of each cell of 4x4 pixels.
struct CenterPointSample {
    /// The weights of the logits of the heat map, [red, green, blue][labels].
    var heat: [[Float]] = [[20], [0], [0]]
    /// The weight of green for the logarithm of the height, and of blue for the logarithm of the width.
    var logSize: Float = 3
    /// The vertical and horizontal offset.
    var offset: [Float] = [0.25, -0.25]
    var labels = ["face"]
    var head = CenterPointHead(stride: 4, sideMultiple: 8, iouThreshold: 0.3)

    /// A network for images of at most 64x48 pixels.
    func model() throws -> ModelFile {
        var net = NetworkBuilder(name: "points", input: TensorShape(height: 48, width: 64, channels: 3))
        let cells = net.add(AveragePool(kernelSize: 4, stride: 4), named: "cells")
        net.add(Convolution(outputChannels: heat[0].count, kernelSize: 1), named: "logits", to: [cells])
        let heatMap = net.add(Sigmoid(), named: "heat")
        let size = net.add(Convolution(outputChannels: 2, kernelSize: 1), named: "size", to: [cells])
        let shift = net.add(Convolution(outputChannels: 2, kernelSize: 1), named: "shift", to: [cells])
        net.add(Concat(), named: "output", to: [heatMap, size, shift])
        let network = try net.network()
        let parameters = try Parameters(network, seed: 1)
        parameters["logits.weight"] = heat.flatMap { $0 }
        parameters["logits.bias"] = heat[0].map { _ in -10 }
        parameters["size.weight"] = [0, 0, logSize, 0, 0, logSize]
        parameters["shift.weight"] = [Float](repeating: 0, count: 6)
        parameters["shift.bias"] = offset
        var preprocessing = Preprocessing(width: 64, height: 48, cropAndScale: .scaleFill)
        preprocessing.mean = [0, 0, 0]
        preprocessing.scale = [1 / 255, 1 / 255, 1 / 255]
        return ModelFile(
            network: network, parameters: parameters, labels: labels, preprocessing: preprocessing, centerPoints: head)
    }

    func detector(threads: Int = 1) throws -> ImageClassifier { try ImageClassifier(model(), threads: threads) }
}

/// A cell of an image, with its color.
struct PaintedCell {
    let row: Int
    let column: Int
    let color: [UInt8]
    init(_ row: Int, _ column: Int, _ color: [UInt8]) { (self.row, self.column, self.color) = (row, column, color) }
}

/// Returns a black image with painted cells.
func cellImage(width: Int = 64, height: Int = 48, cell side: Int = 4, _ cells: [PaintedCell]) -> RasterImage {
    var samples = [UInt8](repeating: 0, count: width * height * 3)
    for cell in cells {
        for y in (cell.row * side)..<min((cell.row + 1) * side, height) {
            for x in (cell.column * side)..<min((cell.column + 1) * side, width) {
                samples.replaceSubrange(((y * width + x) * 3)..<((y * width + x) * 3 + 3), with: cell.color)
            }
        }
    }
    return RasterImage(width: width, height: height, channels: 3, samples: samples)
}
