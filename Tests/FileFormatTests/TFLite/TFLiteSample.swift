import Foundation

/// A value of a FlatBuffer, which the tests write.
indirect enum FlatValue {
    case integer(Int)
    case bytes([UInt8])
    case integers([Int])
    case table([Int: FlatValue])
    case tables([FlatValue])

    static func floats(_ values: [Float]) -> FlatValue {
        .bytes(values.flatMap { withUnsafeBytes(of: $0, Array.init) })
    }
    static func text(_ text: String) -> FlatValue { .bytes(Array(text.utf8)) }
}

/// Writes FlatBuffers; all scalar fields take 4 bytes.
struct FlatWriter {
    private(set) var bytes: [UInt8] = []

    /// Returns a file with a root table and an identifier.
    static func file(_ root: FlatValue, identifier: String) -> [UInt8] {
        var writer = FlatWriter()
        writer.bytes = [0, 0, 0, 0] + identifier.utf8
        let start = writer.write(root)
        writer.set(start, at: 0)
        return writer.bytes
    }

    private mutating func append(_ value: Int) { bytes += withUnsafeBytes(of: Int32(value).littleEndian, Array.init) }

    private mutating func set(_ value: Int, at offset: Int) {
        bytes.replaceSubrange(offset..<(offset + 4), with: withUnsafeBytes(of: Int32(value).littleEndian, Array.init))
    }

    private mutating func align() { bytes += [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4) }

    /// Appends a value that is not a scalar, and returns its offset.
    private mutating func write(_ value: FlatValue) -> Int {
        align()
        switch value {
        case .integer: preconditionFailure("a scalar is a field")
        case .bytes(let values):
            let start = bytes.count
            append(values.count)
            // Readers of text expect a zero at its end.
            bytes += values + [0]
            return start
        case .integers(let values):
            let start = bytes.count
            append(values.count)
            for value in values { append(value) }
            return start
        case .tables(let tables):
            let start = bytes.count
            append(tables.count)
            for _ in tables { append(0) }
            for (index, table) in tables.enumerated() {
                let slot = start + 4 + 4 * index
                set(write(table) - slot, at: slot)
            }
            return start
        case .table(let fields):
            let list = bytes.count
            let keys = fields.keys.sorted()
            let count = (keys.last ?? -1) + 1
            let offsets = (0..<count).map { index in keys.firstIndex(of: index).map { 4 + 4 * $0 } ?? 0 }
            for value in [4 + 2 * count, 4 + 4 * keys.count] + offsets {
                bytes += withUnsafeBytes(of: UInt16(value).littleEndian, Array.init)
            }
            align()
            let start = bytes.count
            append(start - list)
            for _ in keys { append(0) }
            for (index, key) in keys.enumerated() {
                let slot = start + 4 + 4 * index
                if case .integer(let number)? = fields[key] {
                    set(number, at: slot)
                } else if let field = fields[key] {
                    set(write(field) - slot, at: slot)
                }
            }
            return start
        }
    }
}

/// A small detector with the operators and the outputs of BlazeFace, as a TensorFlow Lite model.
struct TFLiteSample {
    private(set) var tensors: [FlatValue] = []
    private var buffers: [FlatValue] = [.table([:])]
    private var operators: [FlatValue] = []
    private let codes = [3, 4, 19, 0, 34, 17, 22, 2, 6, 23, 14]
    var outputs: [Int] = []

    /// - Parameters:
    ///   - values: The number of values for each anchor.
    ///   - hasSigmoids: Whether the scores of each feature map have a sigmoid.
    ///   - change: A closure that adds operators before the end.
    init(values: Int = 4, hasSigmoids: Bool = false, _ change: (inout TFLiteSample) -> Void = { _ in }) {
        let image = tensor([1, 8, 8, 3], "image")
        let half = constant(
            [4, 3, 3, 3], .bytes((0..<108).flatMap { [UInt8(0), UInt8(0x30 | ($0 % 2) << 7)] }), type: 1, "half")
        let weights = operation(6, [half], to: [4, 3, 3, 3], "weights")
        let x = operation(
            3, [image, weights, ramp([4])], to: [1, 4, 4, 4], "first", [0: 0, 1: 2, 2: 2, 3: 1])
        let depthwise = operation(
            4, [x, ramp([1, 3, 3, 4]), ramp([4])], to: [1, 4, 4, 4], "depthwise", [0: 0, 1: 1, 2: 1, 3: 1])
        let wide = operation(3, [depthwise, ramp([6, 1, 1, 4])], to: [1, 4, 4, 6], "wide", [0: 1, 1: 1, 2: 1])
        let amounts = constant(
            [4, 2],
            .bytes(
                [Int32](arrayLiteral: 0, 0, 0, 0, 0, 0, 0, 2).flatMap {
                    withUnsafeBytes(of: $0.littleEndian, Array.init)
                }), type: 2, "amounts")
        let padded = operation(34, [x, amounts], to: [1, 4, 4, 6], "padded")
        let sum = operation(0, [padded, wide], to: [1, 4, 4, 6], "sum", [:])
        let map = operation(19, [sum], to: [1, 4, 4, 6], "map")
        let small = operation(17, [map], to: [1, 2, 2, 6], "small", [0: 1, 1: 2, 2: 2, 3: 2, 4: 2])
        change(&self)
        func head(_ x: Int, _ side: Int, _ channels: Int, _ length: Int, _ name: String) -> Int {
            var y = operation(
                3, [x, ramp([channels, 1, 1, 6])], to: [1, side, side, channels], name, [1: 1, 2: 1])
            if hasSigmoids, length == 1 {
                y = operation(14, [y], to: [1, side, side, channels], "\(name).probabilities")
            }
            return operation(22, [y], to: [1, side * side * channels / length, length], "\(name).flat")
        }
        let scores = operation(
            2, [head(map, 4, 2, 1, "scores"), head(small, 2, 3, 1, "scores2")], to: [1, 44, 1], "all scores", [0: 1])
        let boxes = operation(
            2, [head(map, 4, 2 * values, values, "boxes"), head(small, 2, 3 * values, values, "boxes2")],
            to: [1, 44, values], "all boxes", [0: 1])
        outputs = [boxes, scores]
    }

    /// Adds a tensor that an operator computes.
    mutating func tensor(_ shape: [Int], _ name: String, buffer: Int = 0, type: Int = 0) -> Int {
        tensors.append(
            .table([0: .integers(shape), 1: .integer(type), 2: .integer(buffer), 3: .text(name)]))
        return tensors.count - 1
    }

    mutating func constant(_ shape: [Int], _ data: FlatValue, type: Int = 0, _ name: String) -> Int {
        buffers.append(.table([0: data]))
        return tensor(shape, name, buffer: buffers.count - 1, type: type)
    }

    private mutating func ramp(_ shape: [Int]) -> Int {
        constant(shape, .floats((0..<shape.reduce(1, *)).map { Float($0 % 7 - 3) / 8 }), "constant \(tensors.count)")
    }

    /// Adds an operator, and returns its result.
    mutating func operation(
        _ code: Int, _ inputs: [Int], to shape: [Int], _ name: String, _ options: [Int: Int]? = nil
    ) -> Int {
        let result = tensor(shape, name)
        var fields: [Int: FlatValue] = [
            0: .integer(codes.firstIndex(of: code) ?? 0), 1: .integers(inputs), 2: .integers([result]),
        ]
        // The kind of the options is another number than the operator.
        let kinds = [0: 11, 2: 10, 3: 1, 4: 2, 17: 5]
        if options != nil { fields[3] = kinds[code].map(FlatValue.integer) }
        fields[4] = options.map { .table($0.mapValues(FlatValue.integer)) }
        operators.append(.table(fields))
        return result
    }

    var bytes: [UInt8] {
        let graph: [Int: FlatValue] = [
            0: .tables(tensors), 1: .integers([0]), 2: .integers(outputs), 3: .tables(operators),
        ]
        return FlatWriter.file(
            .table([
                0: .integer(3), 1: .tables(codes.map { .table([0: .integer($0), 3: .integer($0)]) }),
                2: .tables([.table(graph)]), 4: .tables(buffers),
            ]), identifier: "TFL3")
    }
}
