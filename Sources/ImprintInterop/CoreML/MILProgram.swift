internal import ImprintModel

/// An ML program of a Core ML model (MIL.proto, https://github.com/apple/coremltools).
struct MILProgram {
    /// The operations of the function "main" in topological order.
    private(set) var operations: [Operation] = []
    /// The names of the function's outputs.
    private(set) var outputs: [String] = []

    init(_ message: WireMessage) throws {
        var functions: [String: WireMessage] = [:]
        try message.forEachField { field in
            if field.number == 2 { try functions.insert(entry: field.message(), upTo: 256, "functions") }
        }
        guard let main = functions["main"] ?? (functions.count == 1 ? functions.first?.value : nil) else {
            throw ImportError.Problem.unsuitableModel(
                found: "an ML program with \(functions.count) functions",
                advice: "Expected one function, or one with the name main")
        }
        var opset = ""
        var blocks: [String: WireMessage] = [:]
        try main.forEachField { field in
            switch field.number {
            case 2: opset = try field.string()
            case 3: try blocks.insert(entry: field.message(), upTo: 256, "blocks")
            default: break
            }
        }
        guard let block = blocks[opset] ?? (blocks.count == 1 ? blocks.first?.value : nil) else {
            throw ImportError.Problem.malformed(reason: "its program has no operations for \(opset.debugDescription)")
        }
        try block.forEachField { field in
            switch field.number {
            case 2: try outputs.append(field.string(), upTo: 4096, "outputs")
            case 3: try operations.append(Operation(field.message()), upTo: CoreMLModel.maximumCount, "operations")
            default: break
            }
        }
    }

    /// Returns the paths of the weight files.
    func weightFiles() throws -> Set<String> {
        var names: Set<String> = []
        for operation in operations {
            for value in operation.values {
                try value.forEachField { field in
                    guard field.number == 5 else { return }
                    try field.message().forEachField { if $0.number == 1 { try names.insert($0.string()) } }
                }
            }
        }
        return names
    }

    /// The smallest number of bits per weight in the file.
    var minimumBits: Int {
        let types = Set(operations.map(\.type))
        return types.contains("constexpr_lut_to_dense") ? 1 : types.contains { $0.hasPrefix("constexpr_") } ? 8 : 16
    }

    /// One operation.
    struct Operation {
        private(set) var type = ""
        /// The arguments by parameter name.
        private(set) var inputs: [String: [Argument]] = [:]
        /// The names of the outputs.
        private(set) var outputs: [String] = []
        private(set) var attributes: [String: WireMessage] = [:]

        fileprivate init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: type = try field.string()
                case 2:
                    let (key, value) = try field.message().entry()
                    guard inputs.count < 256 else {
                        throw WireError.tooMany(item: "inputs of an operation", limit: 256)
                    }
                    inputs[key] = try value.map(Argument.all) ?? []
                case 3:
                    var name = ""
                    try field.message().forEachField { if $0.number == 1 { name = try $0.string() } }
                    try outputs.append(name, upTo: 4096, "outputs of an operation")
                case 5: try attributes.insert(entry: field.message(), upTo: 256, "attributes of an operation")
                default: break
                }
            }
        }

        /// The name in error messages and for network nodes.
        var name: String { outputs.first ?? type }

        /// The constants that the operation contains.
        var values: [WireMessage] {
            attributes.values
                + inputs.values.joined().compactMap { if case .value(let value) = $0 { value } else { nil } }
        }
    }

    /// An argument of a parameter.
    enum Argument {
        case name(String)
        case value(WireMessage)

        fileprivate static func all(_ message: WireMessage) throws -> [Argument] {
            var result: [Argument] = []
            try message.forEachField { field in
                guard field.number == 1 else { return }
                try field.message().forEachField { field in
                    switch field.number {
                    case 1: try result.append(.name(field.string()), upTo: 4096, "arguments")
                    case 2: try result.append(.value(field.message()), upTo: 4096, "arguments")
                    default: break
                    }
                }
            }
            return result
        }
    }
}

extension WireMessage {
    /// Returns the key and the message of a map entry.
    fileprivate func entry() throws -> (String, WireMessage?) {
        var (key, value): (String, WireMessage?) = ("", nil)
        try forEachField { field in
            switch field.number {
            case 1: key = try field.string()
            case 2: value = try field.message()
            default: break
            }
        }
        return (key, value)
    }
}

extension [String: WireMessage] {
    fileprivate mutating func insert(entry: WireMessage, upTo limit: Int, _ item: String) throws {
        let (key, value) = try entry.entry()
        self[key] = value
        if count > limit { throw WireError.tooMany(item: item, limit: limit) }
    }
}
