import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork

/// Returns an untrained classifier whose confidences depend on every pixel of its input.
func smallModel(
    labels: [String] = ["a", "b", "c"], seed: UInt64 = 7, isShared: Bool = true,
    cropAndScale: CropAndScale = .centerCrop, height: Int = 4, width: Int = 6
) throws -> ImageClassifier {
    var net = NetworkBuilder(name: "small", input: TensorShape(height: height, width: width, channels: 3))
    net.add(Flatten())
    net.add(Dense(outputChannels: labels.count))
    if isShared { net.add(Softmax()) } else { net.add(Sigmoid()) }
    let network = try net.network()
    return try ImageClassifier(
        ModelFile(
            network: network, parameters: try Parameters(network, seed: seed), labels: labels,
            preprocessing: Preprocessing(width: width, height: height, cropAndScale: cropAndScale)))
}

/// Returns an image without repeated rows or columns, a different one for each `number`.
func testImage(_ number: Int = 0, width: Int = 30, height: Int = 20, channels: Int = 3) -> RasterImage {
    RasterImage(
        width: width, height: height, channels: channels,
        samples: (0..<(width * height * channels)).map { sample in
            let (row, column) = (sample / channels / width, sample / channels % width)
            return UInt8((row * 7 + column * 5 + (sample % channels) * 40 + number * 37) % 251)
        })
}
