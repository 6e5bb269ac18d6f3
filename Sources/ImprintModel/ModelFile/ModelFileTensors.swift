internal import CImprintKernels
internal import ImprintNetwork

private typealias Key = ModelFileKey

/// The tensors of a model file: the parameters with their scales, and the replay features.
///
/// Their names and shapes match the network of the file.
struct ModelFileTensors {
    /// Replay features, [photos, positions, channels].
    typealias Features = (values: [Float], shape: [Int])

    /// The precision of the tensors that are not stored as int8.
    let precision: Safetensors.Precision
    /// The storage of the parameters.
    let storage: ModelFile.Storage
    private let file: Safetensors.File
    private let network: Network
    private let layout: ParameterLayout
    /// The tensors with the scales of int8 tensors, by the names of the int8 tensors.
    private let scaleTensors: [String: Safetensors.TensorDescription]
    private let inputScaleTensors: [String: Safetensors.TensorDescription]

    /// Compares the tensors of a file with the parameters of its network, before any of them is read.
    ///
    /// The shapes match the length of the file. So after this comparison, the parameters need at most four times the memory of the file
    /// (float16: twice, int8: four times).
    init(of file: Safetensors.File, network: Network) throws(ModelFileError.Problem) {
        self.file = file
        self.network = network
        layout = ParameterLayout(network)
        let metadata = file.header.metadata
        // Format 1 has no int8 tensors, so scale tensors are unexpected.
        let isOldest = metadata[Key.format] == "1"
        scaleTensors = isOldest ? [:] : try QuantizedWeights.scaleTensors(in: file.header)
        inputScaleTensors =
            metadata[Quantization.key] == nil ? [:] : try QuantizedWeights.inputScaleTensors(in: file.header)
        let scaleNames = Self.names(scaleTensors, inputScaleTensors)
        let hasRehearsal = metadata[Key.rehearsal] != nil
        // Without labels, a tensor of replay features is unexpected like any other tensor.
        let parameterTensors = file.header.tensors.filter { tensor in
            !scaleNames.contains(tensor.name) && !(hasRehearsal && tensor.name == Rehearsal.tensorName)
        }
        let report = LoadingReport(layout, source: parameterTensors.map { ($0.name, $0.shape) })
        guard report.isComplete else { throw .incomplete(report) }
        let isInt8 = !scaleTensors.isEmpty
        precision = !isInt8 && parameterTensors.contains { $0.elementType == .float16 } ? .float16 : .float32
        storage = isInt8 ? .int8 : precision == .float16 ? .float16 : .float32
    }

    /// Returns the names of all tensors with scales.
    private static func names(_ tensors: [String: Safetensors.TensorDescription]...) -> Set<String> {
        Set(tensors.flatMap { $0.values.map(\.name) })
    }

    /// Reads all tensors, and verifies their values and the digest.
    /// - Parameters:
    ///   - maps: Whether to map float32 parameters into memory instead of copying them.
    ///   - digest: The digest of the tensors in the metadata.
    /// - Returns: The parameters with their quantization, and the replay features; nil if the file has none.
    func read(maps: Bool, digest: String) throws -> (parameters: Parameters, features: Features?) {
        let mapped = maps ? file.mapped(layout) : nil
        let parameters = try mapped ?? Parameters(layout)
        let scales = try QuantizedWeights.scales(scaleTensors, in: file)
        let quantization = try quantization(scales)
        let scaleNames = Self.names(scaleTensors, inputScaleTensors)
        var checksum = Checksum()
        var notFinite: String?
        var features: Features?
        // In the order of the data. Tensors that are not parameters are scales or replay features.
        for tensor in file.header.tensors {
            if let entry = layout[tensor.name] {
                let isFinite = try parameters.withValues(of: entry) { values -> Bool in
                    if mapped != nil { return checksum.update(values) }
                    try file.read(tensor, times: scales[tensor.name], into: values, checksum: &checksum)
                    if inputScaleTensors[tensor.name] != nil {
                        quantization?.weights[entry.node]?.divideByInputScales(values)
                    }
                    return imprint_all_finite(values.baseAddress, values.count) != 0
                }
                if !isFinite { notFinite = notFinite ?? tensor.name }
            } else {
                let values = try file.values(of: tensor, checksum: &checksum)
                if !scaleNames.contains(tensor.name) { features = (values, tensor.shape) }
            }
        }
        parameters.quantization = quantization
        if checksum.hexadecimal(digest: digest) != file.header.metadata[Key.checksum] {
            let found = try file.dataDigest()
            guard found == digest else { throw ModelFileError.Problem.damaged(found: found, expected: digest) }
        }
        if let notFinite { throw ModelFileError.Problem.notFinite(tensor: notFinite) }
        return (parameters, features)
    }

    /// Returns the quantization of the network; nil if the file has none.
    /// - Parameter scales: The scales of int8 tensors by their names.
    private func quantization(_ scales: [String: [Float]]) throws -> Quantization? {
        let metadata = file.header.metadata
        guard metadata[Quantization.key] != nil else { return nil }
        return try Quantization(
            value(Quantization.key, in: metadata), scales: scales,
            inputScales: try QuantizedWeights.scales(inputScaleTensors, in: file), of: network, layout)
    }
}
