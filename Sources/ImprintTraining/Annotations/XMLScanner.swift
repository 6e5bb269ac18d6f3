/// A strict reader of the elements and the text of an XML file.
///
/// Foundation's `XMLParser` is not used: on Linux, it crashes on names that are not UTF-8, and on valid processing
/// instructions without data. It also accepts files that end early. This reader has no document types, so no entity can
/// expand to gigabytes or read another file. It checks attributes, but skips them.
struct XMLScanner {
    /// A part of a file.
    enum Event: Equatable {
        case start(String)
        /// The text since the previous start or end of an element precedes the end of the element.
        case end(String, text: String)
    }

    /// The reason why a file is not valid, with its line.
    struct Problem: Error {
        let reason: String
        let line: Int
    }

    /// The maximum number of nested elements.
    static let maximumDepth = 64

    /// The names of the open elements.
    private(set) var path: [String] = []
    private let bytes: [UInt8]
    private var index = 0
    private var text: [UInt8] = []
    private var hasRoot = false
    /// The name of an empty element (`<a/>`) whose end is the next event.
    private var emptyElement: String?

    /// Creates a scanner of text in UTF-8.
    init(_ text: String) { bytes = Array(text.utf8) }

    /// Returns the next start or end of an element, or nil at the end of a valid file.
    mutating func next() throws(Problem) -> Event? {
        if let name = emptyElement {
            emptyElement = nil
            return end(name)
        }
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "&") {
                try readReference()
            } else if byte != UInt8(ascii: "<") {
                guard !path.isEmpty || isSpace(byte) else { throw problem("text outside of the root element") }
                text.append(byte)
                index += 1
            } else if skip("<!--") {
                _ = try content(until: "-->")
            } else if skip("<?") {
                _ = try content(until: "?>")
            } else if skip("<![CDATA[") {
                let content = try content(until: "]]>")
                guard !path.isEmpty else { throw problem("text outside of the root element") }
                text += content
            } else if skip("<!") {
                throw problem("a document type or another declaration, which is not supported")
            } else if skip("</") {
                return try readEnd()
            } else {
                index += 1
                return try readStart()
            }
        }
        guard path.isEmpty, hasRoot else { throw problem("the file ends early") }
        return nil
    }

    private mutating func end(_ name: String) -> Event {
        path.removeLast()
        defer { text = [] }
        return .end(name, text: String(decoding: text, as: UTF8.self))
    }

    private mutating func readStart() throws(Problem) -> Event {
        let name = try name()
        guard !path.isEmpty || !hasRoot else { throw problem("a second root element") }
        guard path.count < Self.maximumDepth else { throw problem("elements are nested too deeply") }
        while true {
            let hadSpace = skipSpaces()
            if skip("/>") {
                emptyElement = name
                break
            }
            if skip(">") { break }
            guard hadSpace, index < bytes.count else { throw problem("the start of an element is not valid") }
            try skipAttribute()
        }
        path.append(name)
        (text, hasRoot) = ([], true)
        return .start(name)
    }

    private mutating func skipAttribute() throws(Problem) {
        _ = try name()
        skipSpaces()
        guard skip("=") else { throw problem("an attribute has no value") }
        skipSpaces()
        let quote = skip("\"") ? "\"" : "'"
        guard quote == "\"" || skip("'") else { throw problem("the value of an attribute is not in quotes") }
        let value = try content(until: quote)
        guard !value.contains(UInt8(ascii: "<")) else { throw problem("the value of an attribute contains <") }
    }

    private mutating func readEnd() throws(Problem) -> Event {
        let name = try name()
        skipSpaces()
        guard skip(">"), name == path.last else { throw problem("an end of an element without its start") }
        return end(name)
    }

    /// Reads an entity reference (`&amp;`) or a character reference (`&#233;`, `&#xE9;`).
    private mutating func readReference() throws(Problem) {
        let predefined = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
        index += 1
        let end = bytes[index...].prefix(12).firstIndex(of: UInt8(ascii: ";"))
        guard let end, !path.isEmpty else { throw problem("a reference is not valid") }
        let name = String(decoding: bytes[index..<end], as: UTF8.self)
        index = end + 1
        if let character = predefined[name] {
            text += character.utf8
        } else if let scalar = Self.scalar(name) {
            text += String(Character(scalar)).utf8
        } else {
            throw problem("the entity \(name) is unknown")
        }
    }

    private static func scalar(_ reference: String) -> UnicodeScalar? {
        guard reference.hasPrefix("#") else { return nil }
        let isHexadecimal = reference.hasPrefix("#x")
        let number = UInt32(reference.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
        return number.flatMap { $0 == 0 ? nil : UnicodeScalar($0) }
    }

    /// Reads a name; characters outside of ASCII are not checked.
    private mutating func name() throws(Problem) -> String {
        let start = index
        while index < bytes.count, !isSpace(bytes[index]), !"<>/=&\"'!?".utf8.contains(bytes[index]) { index += 1 }
        guard index > start, index - start <= 256 else { throw problem("a name is not valid") }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// Returns the bytes before the next occurrence of `delimiter`, and skips both.
    private mutating func content(until delimiter: String) throws(Problem) -> ArraySlice<UInt8> {
        let start = index
        while index < bytes.count {
            let end = index
            if skip(delimiter) { return bytes[start..<end] }
            index += 1
        }
        throw problem("the file ends early")
    }

    /// Skips a prefix; returns whether it was there.
    private mutating func skip(_ prefix: String) -> Bool {
        guard bytes[index...].starts(with: prefix.utf8) else { return false }
        index += prefix.utf8.count
        return true
    }

    /// Skips spaces and line ends; returns whether there were any.
    @discardableResult private mutating func skipSpaces() -> Bool {
        let start = index
        while index < bytes.count, isSpace(bytes[index]) { index += 1 }
        return index > start
    }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    private func problem(_ reason: String) -> Problem {
        Problem(reason: reason, line: 1 + bytes[..<min(index, bytes.count)].count { $0 == UInt8(ascii: "\n") })
    }
}
