internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

extension BenchmarkOptions {
    /// Returns a model that is quantized for some preprocessed images if the precision is int8, otherwise the model itself.
    func quantized(_ model: ModelFile, for images: [RasterImage]) throws -> ModelFile {
        guard precision == .int8 else { return model }
        let parameters = try Quantizer(model.network, parameters: model.parameters, threads: threads).quantize(
            for: images.map { image in
                let shape = TensorShape(height: image.height, width: image.width, channels: image.channels)
                return Quantizer.Image(shape: shape) { values in
                    image.samples.withUnsafeBufferPointer { model.preprocessing.normalize($0, into: values) }
                }
            })
        return ModelFile(
            network: model.network, parameters: parameters, labels: model.labels, preprocessing: model.preprocessing,
            detector: model.detector)
    }
}
