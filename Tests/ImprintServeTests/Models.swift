import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork

@testable import ImprintServe

/// Returns a model that distinguishes bright images from dark ones, whose input has 8x8 pixels.
func brightnessModel() throws -> ModelFile {
    var builder = NetworkBuilder(name: "brightness", input: TensorShape(height: 8, width: 8, channels: 3))
    builder.add(GlobalAveragePool(), named: "mean")
    builder.add(Dense(outputChannels: 2), named: "head")
    builder.add(Softmax(), named: "confidence")
    let network = try builder.network()
    let parameters = try Parameters(network, seed: 0)
    parameters["head.weight"] = [1, -1, 1, -1, 1, -1]
    return ModelFile(
        network: network, parameters: parameters, labels: ["bright", "dark"],
        preprocessing: Preprocessing(width: 8, height: 8))
}

/// Returns a logo detector with random parameters.
func randomDetector() throws -> ModelFile {
    let network = try Network.logoDetector(logos: 1)
    var preprocessing = Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill)
    (preprocessing.mean, preprocessing.scale) = ([128, 128, 128], [1 / 64, 1 / 64, 1 / 64])
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 2), labels: ["none", "logo"],
        preprocessing: preprocessing,
        detector: DetectorHead(
            levels: [96, 136], stride: 16, span: 44,
            logos: [DetectorHead.Logo(label: "logo", slope: 0.5, offset: -1)]))
}

/// Returns the bytes of a PNG file of one grey value.
func greyPhoto(_ grey: UInt8, width: Int = 9, height: Int = 12) throws -> Data {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).png")
    defer { try? FileManager.default.removeItem(at: file) }
    try ImageFile.write(RasterImage(width: width, height: height, filledWith: grey), to: file)
    return try Data(contentsOf: file)
}

/// Returns pictures as the binary elements of a tensor with the datatype BYTES.
func bytesElements(_ pictures: [Data]) -> Data {
    pictures.reduce(into: Data()) { data, picture in
        withUnsafeBytes(of: UInt32(picture.count).littleEndian) { data.append(contentsOf: $0) }
        data += picture
    }
}
