internal import ImprintCore
internal import ImprintNetwork

/// The first graph of a TensorFlow Lite file.
///
/// Source: TensorFlow, tensorflow/compiler/mlir/lite/schema/schema.fbs, version 3.
struct TFLiteModel {
    /// A tensor, with the axes batch, height, width, channels if it is an image.
    struct Tensor {
        let name: String
        let shape: [Int]
        /// The element type, a value of the schema's TensorType.
        let type: Int
        /// The range of the elements in the file; nil if an operator computes them.
        let data: Range<Int>?
        let isSparse: Bool
    }

    /// An operator; its inputs and outputs are indices of tensors, and −1 is an omitted input.
    struct Operator {
        /// The kind, a value of the schema's BuiltinOperator.
        let code: Int
        let inputs: [Int]
        let outputs: [Int]
        let options: FlatTable?
    }

    let file: MappedFile
    let tensors: [Tensor]
    let operators: [Operator]
    let inputs: [Int]
    let outputs: [Int]

    init(_ file: MappedFile) throws(ImportError.Problem) {
        self.file = file
        let limit = 1 << 14
        let model = try FlatTable(rootOf: file)
        let graphs = try model.tables(2, limit: 64)
        guard graphs.count == 1, let graph = graphs.first else {
            throw .unsuitableModel(
                found: "a TensorFlow Lite model with \(graphs.count) graphs", advice: "Expected one graph")
        }
        var buffers: [Range<Int>?] = []
        for buffer in try model.tables(4, limit: limit) { buffers.append(try buffer.vector(0, elementSize: 1)) }
        var codes: [Int] = []
        for code in try model.tables(1, limit: limit) {
            // Older files have only the byte.
            codes.append(max(try code.integer(0, Int8.self), try code.integer(3, Int32.self)))
        }
        var tensors: [Tensor] = []
        for tensor in try graph.tables(0, limit: limit) {
            let buffer = try tensor.integer(2, UInt32.self)
            guard buffers.indices.contains(buffer) else {
                throw .malformed(
                    reason: "a tensor refers to buffer \(buffer), but the file has \(buffers.count) buffers")
            }
            let data = buffers[buffer].flatMap { $0.isEmpty ? nil : $0 }
            tensors.append(
                Tensor(
                    name: try tensor.name(3), shape: try tensor.integers(0, limit: NetworkAssembler.maximumRank),
                    type: try tensor.integer(1, Int8.self), data: data, isSparse: try tensor.has(6)))
        }
        var operators: [Operator] = []
        for entry in try graph.tables(3, limit: 4096) {
            let index = try entry.integer(0, UInt32.self)
            guard codes.indices.contains(index) else {
                throw .malformed(
                    reason: "an operator refers to operator code \(index), but the file has \(codes.count)")
            }
            operators.append(
                Operator(
                    code: codes[index], inputs: try entry.integers(1, limit: 256),
                    outputs: try entry.integers(2, limit: 256), options: try entry.table(4)))
        }
        self.tensors = tensors
        self.operators = operators
        inputs = try graph.integers(1, limit: 256)
        outputs = try graph.integers(2, limit: 256)
        let known = -1..<tensors.count
        guard operators.allSatisfy({ ($0.inputs + $0.outputs).allSatisfy(known.contains) }),
            (inputs + outputs).allSatisfy({ tensors.indices.contains($0) })
        else { throw .malformed(reason: "an operator refers to a tensor that the file does not contain") }
    }

    /// Returns the floating-point elements of a constant.
    func floats(_ tensor: Tensor) throws(ImportError.Problem) -> [Float] {
        let sizes = [0: 4, 1: 2]
        guard let size = sizes[tensor.type], !tensor.isSparse else {
            throw .unsupported([
                .init(
                    operation: "constant", node: tensor.name,
                    reason: tensor.isSparse
                        ? "sparse, expected dense" : "elements of type \(tensor.type), expected float32 or float16")
            ])
        }
        let range = try elements(of: tensor, size: size)
        return size == 4 ? try file.floats(range) : try file.halves(range)
    }

    /// Returns the 32-bit integers of a constant.
    func integers(_ tensor: Tensor) throws(ImportError.Problem) -> [Int] {
        guard tensor.type == 2 else {
            throw .unsupported([
                .init(
                    operation: "constant", node: tensor.name, reason: "elements of type \(tensor.type), expected int32")
            ])
        }
        return stride(from: 0, to: try elements(of: tensor, size: 4).count, by: 4).map {
            Int(file.load(Int32.self, at: (tensor.data?.lowerBound ?? 0) + $0))
        }
    }

    private func elements(of tensor: Tensor, size: Int) throws(ImportError.Problem) -> Range<Int> {
        guard let data = tensor.data, tensor.shape.allSatisfy({ $0 > 0 }), let count = checkedProduct(tensor.shape),
            count.multipliedReportingOverflow(by: size) == (data.count, false)
        else {
            throw .malformed(
                reason: "the constant \(tensor.name.debugDescription) of the shape \(tensor.shape) has "
                    + counted(tensor.data?.count ?? 0, "byte"))
        }
        return data
    }
}
