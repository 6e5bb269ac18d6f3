internal import ImprintModel

/// A message in the protobuf text format of `deploy.prototxt` (protobuf.dev, "Text Format Language").
///
/// The parser does not check names against a schema; callers read the fields that they know.
struct TextMessage {
    /// An upper bound for the size of an architecture.
    static let maximumLength = 1 << 22
    /// An upper bound for the values in an architecture.
    private static let maximumCount = 1 << 17

    private var fields: [(name: String, value: Value)] = []

    private enum Value {
        case word(String)
        case message(TextMessage)
    }

    /// A syntax error.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let line: Int
        let reason: String
        var description: String { "line \(line): \(reason)" }
    }

    /// Parses a text.
    init(_ text: [UInt8]) throws(Problem) {
        var scanner = Scanner(text: text)
        self = try scanner.message(depth: 0)
    }

    private init() {}

    /// Returns the scalar values of the fields with this name.
    func words(_ name: String) -> [String] {
        fields.compactMap { field in
            if field.name == name, case .word(let word) = field.value { word } else { nil }
        }
    }

    /// Returns the scalar value of a field; the last one wins.
    func word(_ name: String) -> String? { words(name).last }

    /// Returns the messages in the fields with this name.
    func messages(_ name: String) -> [TextMessage] {
        fields.compactMap { field in
            if field.name == name, case .message(let message) = field.value { message } else { nil }
        }
    }

    /// Returns the message in a field; the last one wins, and an empty one replaces a missing one.
    func message(_ name: String) -> TextMessage { messages(name).last ?? TextMessage() }

    /// Whether there is a field with this name.
    func has(_ name: String) -> Bool { fields.contains { $0.name == name } }

    func integer(_ name: String) -> Int? { word(name).flatMap { Int($0) } }
    func integers(_ name: String) -> [Int] { words(name).compactMap { Int($0) } }
    func bool(_ name: String) -> Bool? { word(name).map { ["true", "True", "t", "1"].contains($0) } }

    func float(_ name: String) -> Float? {
        word(name).flatMap { Float($0.hasSuffix("f") ? String($0.dropLast()) : $0) }
    }

    func floats(_ name: String) -> [Float] {
        words(name).compactMap { Float($0.hasSuffix("f") ? String($0.dropLast()) : $0) }
    }

    /// Parses text into messages.
    private struct Scanner {
        private let text: [UInt8]
        var position = 0
        var line = 1
        private var count = 0

        init(text: [UInt8]) { self.text = text }

        mutating func message(depth: Int) throws(Problem) -> TextMessage {
            guard depth <= WireMessage.maximumDepth else { throw problem("the messages are nested too deeply") }
            var message = TextMessage()
            while true {
                skipSpace()
                guard let next = peek else {
                    if depth > 0 { throw problem("the text ends inside a message, expected }") }
                    return message
                }
                if next == UInt8(ascii: "}") || next == UInt8(ascii: ">") {
                    guard depth > 0 else { throw problem("a } without a matching {") }
                    position += 1
                    return message
                }
                let name = try word()
                skipSpace()
                if peek == UInt8(ascii: ":") {
                    position += 1
                    skipSpace()
                }
                if peek == UInt8(ascii: "[") {
                    position += 1
                    try list(named: name, into: &message, depth: depth)
                } else {
                    message.fields.append((name, try value(depth: depth)))
                }
                skipSpace()
                if peek == UInt8(ascii: ",") || peek == UInt8(ascii: ";") { position += 1 }
            }
        }

        private mutating func list(named name: String, into message: inout TextMessage, depth: Int) throws(Problem) {
            while true {
                skipSpace()
                if peek == UInt8(ascii: "]") {
                    position += 1
                    return
                }
                message.fields.append((name, try value(depth: depth)))
                skipSpace()
                if peek == UInt8(ascii: ",") { position += 1 }
            }
        }

        private mutating func value(depth: Int) throws(Problem) -> Value {
            count += 1
            guard count <= TextMessage.maximumCount else {
                throw problem("more than \(TextMessage.maximumCount) values")
            }
            switch peek {
            case UInt8(ascii: "{"), UInt8(ascii: "<"):
                position += 1
                return .message(try message(depth: depth + 1))
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                var all = try quoted()
                skipSpace()
                // Adjacent strings are concatenated.
                while peek == UInt8(ascii: "\"") || peek == UInt8(ascii: "'") {
                    all += try quoted()
                    skipSpace()
                }
                return .word(String(decoding: all, as: UTF8.self))
            default:
                let word = try word()
                guard word.first.map({ $0.isNumber || "+-.".contains($0) }) != true || Self.isNumber(word) else {
                    throw problem("\(word), expected a decimal number")
                }
                return .word(word)
            }
        }

        private static func isNumber(_ word: String) -> Bool {
            !word.lowercased().contains("x") && Float(word.hasSuffix("f") ? String(word.dropLast()) : word) != nil
        }

        private mutating func quoted() throws(Problem) -> [UInt8] {
            let quote = text[position]
            position += 1
            var result: [UInt8] = []
            while let next = peek, next != quote {
                position += 1
                if next == UInt8(ascii: "\n") {
                    throw problem("a string without a closing quote on the same line")
                }
                guard next == UInt8(ascii: "\\"), let escaped = peek else {
                    result.append(next)
                    continue
                }
                position += 1
                switch escaped {
                case UInt8(ascii: "n"): result.append(UInt8(ascii: "\n"))
                case UInt8(ascii: "t"): result.append(UInt8(ascii: "\t"))
                case UInt8(ascii: "r"): result.append(UInt8(ascii: "\r"))
                default: result.append(escaped)
                }
            }
            guard peek == quote else { throw problem("a string without a closing quote") }
            position += 1
            return result
        }

        private mutating func word() throws(Problem) -> String {
            let start = position
            while let next = peek, isPartOfWord(next) { position += 1 }
            guard position > start else {
                let found = peek.map { String(decoding: [$0], as: UTF8.self).debugDescription } ?? "the end"
                throw problem("\(found), expected a name or a value")
            }
            return String(decoding: text[start..<position], as: UTF8.self)
        }

        private func isPartOfWord(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "+"):
                true
            default: false
            }
        }

        private mutating func skipSpace() {
            while let next = peek {
                if next == UInt8(ascii: "#") {
                    while let next = peek, next != UInt8(ascii: "\n") { position += 1 }
                } else if [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n")].contains(next)
                {
                    if next == UInt8(ascii: "\n") { line += 1 }
                    position += 1
                } else {
                    return
                }
            }
        }

        private var peek: UInt8? { position < text.count ? text[position] : nil }
        private func problem(_ reason: String) -> Problem { Problem(line: line, reason: reason) }
    }
}
