import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork

/// Writes the model m.imprint, which classifies photos by brightness, and photos, into a folder.
///
/// Bright photos have the first label and dark photos the second one.
/// - Parameters:
///   - weight: The absolute value of the weights.
///   - photos: The path of each photo, relative to the folder, and its grey value.
func writeBrightnessModel(
    labels: [String] = ["bright", "dark"], weight: Float = 2.0 / 3, photos: KeyValuePairs<String, UInt8>, to folder: URL
) throws {
    try brightnessModel(labels: labels, weights: alternatingWeights(weight, labels: labels.count))
        .write(to: folder.appending(path: "m.imprint"))
    for (path, grey) in photos { try writeGreyPhoto(folder.appending(path: path), grey) }
}

/// Writes a photo of one grey value.
func writeGreyPhoto(_ file: URL, _ grey: UInt8) throws {
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try ImageFile.write(RasterImage(width: 9, height: 12, filledWith: grey), to: file)
}

/// Writes a logo detector with random parameters, whose labels are "dark" for photos without a logo, then those of the logos.
func writeRandomDetector(logos: [String], to file: URL) throws {
    let network = try Network.logoDetector(logos: logos.count)
    var preprocessing = Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill)
    (preprocessing.mean, preprocessing.scale) = ([128, 128, 128], [1 / 64, 1 / 64, 1 / 64])
    try ModelFile(
        network: network, parameters: try Parameters(network, seed: 2), labels: ["dark"] + logos,
        preprocessing: preprocessing,
        detector: DetectorHead(
            levels: [96, 136], stride: 16, span: 44,
            logos: logos.map { DetectorHead.Logo(label: $0, slope: 0.5, offset: -1) })
    ).write(to: file)
}

/// Returns weights of the dense layer of a brightness model, [3, labels]: the weight for every other label, and its negative for the rest.
func alternatingWeights(_ weight: Float, labels: Int) -> [Float] {
    (0..<3 * labels).map { ($0 % labels % 2 == 0 ? weight : -weight) }
}

/// Creates a model whose logits are the dense layer of the mean colour.
/// - Parameter weights: The weights of the dense layer, [3, labels].
func brightnessModel(
    labels: [String], weights: [Float], activation: any Layer = Softmax(), training: TrainingRecord? = nil
) throws -> ModelFile {
    var builder = NetworkBuilder(name: "brightness", input: TensorShape(height: 8, width: 8, channels: 3))
    builder.add(GlobalAveragePool(), named: "mean")
    builder.add(Dense(outputChannels: labels.count), named: "head")
    builder.add(activation, named: "confidence")
    let network = try builder.network()
    let parameters = try Parameters(network, seed: 0)
    parameters["head.weight"] = weights
    return ModelFile(
        network: network, parameters: parameters, labels: labels, preprocessing: Preprocessing(width: 8, height: 8),
        training: training)
}
