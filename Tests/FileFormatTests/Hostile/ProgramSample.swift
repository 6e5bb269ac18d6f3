/// A Core ML file with an ML program and its weight file; its output is the output of the last operation.
struct ProgramSample {
    /// An element type, by its code in the file.
    enum Element: Int {
        case bool = 1, float16 = 10, float32 = 11, int8 = 21, int32 = 23, int64 = 24, uint8 = 31
    }

    var (width, height) = (4, 4)
    /// The content of the weight file after its header.
    var blobs: [UInt8] = []
    private var operations: [WireField] = []
    private var last = "image"

    /// The argument of a parameter.
    enum Argument: Sendable {
        case name(String)
        case names([String])
        case value([WireField])

        static func integers(_ values: [Int]) -> Argument {
            .value(ProgramSample.value(.int32, [values.count], .integers(1, values), kind: 2))
        }
        static func integer(_ value: Int) -> Argument {
            .value(ProgramSample.value(.int32, [], .integers(1, [value]), kind: 2))
        }
        static func bool(_ value: Bool) -> Argument {
            .value(ProgramSample.value(.bool, [], .integers(1, [value ? 1 : 0]), kind: 3))
        }
        static func float(_ value: Float) -> Argument {
            .value(ProgramSample.value(.float32, [], .floats(1, [value]), kind: 1))
        }
        static func floats(_ shape: [Int], _ values: [Float]) -> Argument {
            .value(ProgramSample.value(.float32, shape, .floats(1, values), kind: 1))
        }
        static func text(_ text: String) -> Argument {
            .value([
                .message(2, [.message(1, [.integer(1, 2)])]),
                .message(3, [.message(1, [.message(4, [.text(1, text)])])]),
            ])
        }
        /// Creates a tensor in the weight file.
        /// - Parameter offset: The offset of its record.
        static func stored(
            _ element: Element, _ shape: [Int], at offset: Int, file: String = "@model_path/weights"
        ) -> Argument {
            .value([ProgramSample.type(element, shape), .message(5, [.text(1, file), .integer(2, offset)])])
        }

        fileprivate var fields: [WireField] {
            switch self {
            case .name(let name): [.message(1, [.text(1, name)])]
            case .names(let names): names.map { .message(1, [.text(1, $0)]) }
            case .value(let value): [.message(1, [.message(2, value)])]
            }
        }
    }

    fileprivate static func type(_ element: Element, _ shape: [Int]) -> WireField {
        .message(
            2,
            [
                .message(
                    1,
                    [.integer(1, element.rawValue), .integer(2, shape.count)]
                        + shape.map { .message(3, [.message(1, [.integer(1, $0)])]) })
            ])
    }

    fileprivate static func value(_ element: Element, _ shape: [Int], _ elements: WireField, kind: Int) -> [WireField] {
        [type(element, shape), .message(3, [.message(1, [.message(kind, [elements])])])]
    }

    /// Adds an operation; by default its parameter x is the output of the previous operation.
    mutating func add(
        _ type: String, _ parameters: KeyValuePairs<String, Argument> = [:], readsLast: Bool = true,
        to outputs: [String]? = nil
    ) {
        let outputs = outputs ?? ["\(type)\(operations.count)"]
        let x: [(String, Argument)] = readsLast ? [("x", .name(last))] : []
        operations.append(
            .message(
                3,
                [.text(1, type)]
                    + (x + parameters.map { ($0, $1) }).map { .message(2, [.text(1, $0), .message(2, $1.fields)]) }
                    + outputs.map { .message(3, [.text(1, $0)]) }))
        last = outputs.last ?? last
    }

    /// Adds a constant.
    mutating func constant(_ name: String, _ argument: Argument) {
        guard case .value(let value) = argument else { return }
        operations.append(
            .message(
                3,
                [.text(1, "const"), .message(3, [.text(1, name)]), .message(5, [.text(1, "val"), .message(2, value)])]))
    }

    /// Adds bytes to the weight file, and returns the offset of their record.
    mutating func store(_ bytes: [UInt8], length: Int? = nil, offset: Int? = nil) -> Int {
        let recordOffset = 64 + blobs.count
        func little(_ number: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        }
        var record =
            little(0xDEAD_BEEF, 4) + little(2, 4) + little(length ?? bytes.count, 8)
            + little(offset ?? recordOffset + 64, 8)
        record += Array(repeating: 0, count: 40)
        blobs += record + bytes + Array(repeating: 0, count: (64 - bytes.count % 64) % 64)
        return recordOffset
    }

    /// The weight file.
    var weights: [UInt8] { [1, 0, 0, 0, 2, 0, 0, 0] + Array(repeating: 0, count: 56) + blobs }

    var bytes: [UInt8] {
        let image: WireField = .message(
            1,
            [
                .text(1, "image"),
                .message(3, [.message(4, [.integer(1, width), .integer(2, height), .integer(3, 20)])]),
            ])
        let block: [WireField] = [.text(2, last)] + operations
        let function: [WireField] = [.text(2, "CoreML5"), .message(3, [.text(1, "CoreML5"), .message(2, block)])]
        let program: [WireField] = [.integer(1, 1), .message(2, [.text(1, "main"), .message(2, function)])]
        return WireField.encode([.integer(1, 7), .message(2, [image]), .message(502, program)])
    }
}
