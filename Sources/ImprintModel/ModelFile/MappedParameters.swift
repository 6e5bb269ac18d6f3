internal import ImprintNetwork

extension Safetensors.File {
    /// The parameters of `layout` in their place in the file, without a copy; nil if they do not lie there as they do in memory.
    func mapped(_ layout: ParameterLayout) -> Parameters? {
        guard let (descriptor, dataStart) = opened, dataStart % 64 == 0, layout.count > 0 else { return nil }
        // What a writer of model files puts first.
        for (entry, tensor) in zip(layout.entries, header.tensors) {
            guard
                entry.name == tensor.name, tensor.elementType == .float32,
                tensor.byteRange.lowerBound == entry.offset * MemoryLayout<Float>.stride
            else { return nil }
        }
        return Parameters(layout, mapping: descriptor, at: dataStart)
    }
}
