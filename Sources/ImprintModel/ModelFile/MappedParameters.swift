internal import ImprintNetwork

extension Safetensors.File {
    /// Memory-maps the parameters of `layout` in the file; nil if their layout in the file differs from the layout in memory.
    func mapped(_ layout: ParameterLayout) -> Parameters? {
        guard let (descriptor, dataStart) = opened, dataStart % 64 == 0, layout.count > 0 else { return nil }
        // A model file starts with the parameters.
        for (entry, tensor) in zip(layout.entries, header.tensors) {
            guard
                entry.name == tensor.name, tensor.elementType == .float32,
                tensor.byteRange.lowerBound == entry.offset * MemoryLayout<Float>.stride
            else { return nil }
        }
        return Parameters(layout, mapping: descriptor, at: dataStart)
    }
}
