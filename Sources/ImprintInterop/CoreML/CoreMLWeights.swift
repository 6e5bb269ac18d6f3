internal import ImprintCore

/// Weights in a Core ML file (WeightParams in NeuralNetwork.proto): 32 or 16 bits, or quantized with 1 to 8 bits.
struct CoreMLWeights {
    private let message: WireMessage
    /// The layer's name for error messages.
    private let name: String

    init(_ message: WireMessage, of name: String) {
        self.message = message
        self.name = name
    }

    /// Whether the weights are quantized to 8 bits or fewer.
    func isQuantized() throws -> Bool {
        var found = false
        try message.forEachField { if $0.number == 30 { found = try !$0.bytes().isEmpty } }
        return found
    }

    /// Returns the decoded weights.
    ///
    /// - Throws: `ImportError.Problem` if there are not `count` values.
    func floats(_ count: Int) throws -> [Float] {
        var values: [Float] = []
        var codes: Range<Int>?
        var quantization: Quantization?
        try message.forEachField { field in
            switch field.number {
            case 1: try field.append(to: &values)
            case 2: values = try message.file.halves(try checked(field.bytes(), size: 2, count))
            case 30: codes = try field.bytes()
            case 31:
                throw ImportError.Problem.unsupported([
                    .init(operation: "weights", node: name, reason: "signed codes for quantized inputs")
                ])
            case 40: quantization = try Quantization(field.message())
            default: break
            }
        }
        if let codes, !codes.isEmpty {
            guard let quantization else { throw problem("codes without quantization parameters") }
            values = try quantization.values(codes, in: message.file, count: count, problem)
        }
        guard values.count == count else { throw problem("\(counted(values.count, "value")), expected \(count)") }
        return values
    }

    private func checked(_ range: Range<Int>, size: Int, _ count: Int) throws -> Range<Int> {
        guard count.multipliedReportingOverflow(by: size) == (range.count, false) else {
            throw problem("\(counted(range.count, "byte")), expected \(size) for each of \(counted(count, "value"))")
        }
        return range
    }

    private func problem(_ reason: String) -> ImportError.Problem {
        .malformed(reason: "the layer \(name.debugDescription) has weights of \(reason)")
    }
}

extension CoreMLWeights {
    /// The quantization of weights: linear with a scale and a bias, or with a lookup table.
    private struct Quantization {
        private var bits = 0
        private var scale: [Float] = []
        private var bias: [Float] = []
        private var table: [Float]?

        init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: bits = try field.integer()
                case 101:
                    (scale, bias, table) = ([], [], nil)
                    try field.message().forEachField { field in
                        switch field.number {
                        case 1: try field.append(to: &scale)
                        case 2: try field.append(to: &bias)
                        default: break
                        }
                    }
                case 102:
                    var values: [Float] = []
                    try field.message().forEachField { if $0.number == 1 { try $0.append(to: &values) } }
                    table = values
                default: break
                }
            }
        }

        /// Dequantizes codes, which are packed across byte boundaries with the highest bit first.
        func values(
            _ codes: Range<Int>, in file: MappedFile, count: Int, _ problem: (String) -> ImportError.Problem
        ) throws -> [Float] {
            guard (1...8).contains(bits) else { throw problem("codes of \(counted(bits, "bit")), expected 1 to 8") }
            // The first condition prevents an overflow in the second.
            guard count <= codes.count * 8 / bits, codes.count == (count * bits + 7) / 8 else {
                throw problem(
                    "\(counted(codes.count, "byte")) of codes of \(counted(bits, "bit")), expected \(counted(count, "code"))"
                )
            }
            let dequantize = try dequantizer(count, problem)
            try ImportError.Problem.checkMemory(forElements: count)
            let mask = (1 << bits) - 1
            return (0..<count).map { index in
                let last = (index + 1) * bits - 1
                let (byte, shift) = (last / 8, 7 - last % 8)
                var word = Int(file[codes.lowerBound + byte])
                if byte > 0 { word |= Int(file[codes.lowerBound + byte - 1]) << 8 }
                return dequantize(index, word >> shift & mask)
            }
        }

        /// Returns a function that dequantizes the code at an index.
        private func dequantizer(
            _ count: Int, _ problem: (String) -> ImportError.Problem
        ) throws -> (_ index: Int, _ code: Int) -> Float {
            if let table {
                guard table.count == 1 << bits else {
                    throw problem("a lookup table of \(table.count) values, expected \(1 << bits)")
                }
                return { table[$1] }
            }
            let (scale, bias) = (scale, bias.isEmpty ? [0] : bias)
            guard !scale.isEmpty, count % scale.count == 0, count % bias.count == 0, count > 0 else {
                throw problem(
                    "codes with \(scale.count) scales and \(bias.count) biases, expected 1 or one per output")
            }
            let (perScale, perBias) = (count / scale.count, count / bias.count)
            return { Float($1) * scale[$0 / perScale] + bias[$0 / perBias] }
        }
    }
}
