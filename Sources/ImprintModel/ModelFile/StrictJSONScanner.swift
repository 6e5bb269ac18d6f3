/// A strict parser of the JSON in a safetensors header or a file of categories.
///
/// Such JSON is two objects deep and contains only strings, counts and lists of these. The scanner has a function for each of them and does
/// not recurse, so nesting in a hostile file cannot exhaust the stack. It accepts only the expected bytes outside strings, and only valid
/// UTF-8 inside strings. It throws the problems of a safetensors header; `Categories` replaces them by its own errors.
struct StrictJSONScanner {
    typealias Problem = SafetensorsError.Problem

    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads `{"key": …, …}`, in which no key may occur twice.
    /// - Parameter member: Reads the value of each key.
    mutating func object(
        _ member: (inout StrictJSONScanner, _ key: String) throws(Problem) -> Void
    ) throws(Problem) {
        var keys = Set<String>()
        try list(from: "{", to: "}") { scanner throws(Problem) in
            let key = try scanner.string()
            guard keys.insert(key).inserted else { throw .duplicateKey(key) }
            scanner.skipSpace()
            try scanner.expect(":")
            scanner.skipSpace()
            try member(&scanner, key)
        }
    }

    /// Reads `[1, 2, …]` with at most 64 elements, the maximum number of dimensions in array libraries.
    mutating func counts() throws(Problem) -> [Int] {
        var counts: [Int] = []
        try list(from: "[", to: "]") { scanner throws(Problem) in
            guard counts.count < 64 else { throw scanner.malformed("at most 64 numbers") }
            counts.append(try scanner.count())
        }
        return counts
    }

    /// Reads `["a", "b", …]`.
    mutating func strings() throws(Problem) -> [String] {
        var strings: [String] = []
        try list(from: "[", to: "]") { scanner throws(Problem) in strings.append(try scanner.string()) }
        return strings
    }

    /// Reads an integer from 0 to `Int.max` without sign, fraction, exponent and leading zeros.
    mutating func count() throws(Problem) -> Int {
        let start = offset
        var value = 0
        while let byte = peek, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte {
            let (tens, first) = value.multipliedReportingOverflow(by: 10)
            let (sum, second) = tens.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
            if first || second { throw malformed("a number below 2^63", at: start) }
            value = sum
            offset += 1
        }
        let digits = offset - start
        let leadingZero = digits > 1 && bytes[start] == UInt8(ascii: "0")
        if digits == 0 || leadingZero { throw malformed("a non-negative integer", at: start) }
        return value
    }

    /// Reads a string in quotes.
    mutating func string() throws(Problem) -> String {
        let start = offset
        try expect("\"")
        var text: [UInt8] = []
        while let byte = next() {
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else {
                    throw malformed("a string in valid UTF-8", at: start)
                }
                return string
            case UInt8(ascii: "\\"):
                text += String(Character(try escapedScalar())).utf8
            case 0..<0x20:
                throw malformed("a string without control characters", at: offset - 1)
            default:
                text.append(byte)
            }
        }
        throw malformed("the end of a string", at: offset)
    }

    /// Checks that only white space follows.
    mutating func end() throws(Problem) {
        skipSpace()
        if offset < bytes.count { throw malformed("only white space", at: offset) }
    }

    /// Returns the problem that `expected` was not found at the current offset, or at `position`.
    func malformed(_ expected: String, at position: Int? = nil) -> Problem {
        .malformedHeader(offset: position ?? offset, expected: expected)
    }

    private var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func next() -> UInt8? {
        guard let byte = peek else { return nil }
        offset += 1
        return byte
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        offset += 1
        return true
    }

    private mutating func expect(_ character: Unicode.Scalar) throws(Problem) {
        if !skip(character) { throw malformed("\(character)") }
    }

    /// Skips white space.
    mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { offset += 1 }
    }

    private mutating func list(
        from open: Unicode.Scalar, to close: Unicode.Scalar,
        _ element: (inout StrictJSONScanner) throws(Problem) -> Void
    ) throws(Problem) {
        try expect(open)
        skipSpace()
        if skip(close) { return }
        while true {
            try element(&self)
            skipSpace()
            if skip(close) { return }
            guard skip(",") else { throw malformed(", or \(close)") }
            skipSpace()
        }
    }

    /// Reads the rest of an escape sequence after its backslash.
    private mutating func escapedScalar() throws(Problem) -> Unicode.Scalar {
        let start = offset - 1
        switch next().map({ Unicode.Scalar($0) }) {
        case "\"": return "\""
        case "\\": return "\\"
        case "/": return "/"
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u":
            var code = try hexadecimal()
            if 0xD800..<0xDC00 ~= code && skip("\\") && skip("u") {
                let low = try hexadecimal()
                // 0xD800 stands for a high surrogate without a low one, which is rejected below.
                code = 0xDC00..<0xE000 ~= low ? 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00) : 0xD800
            }
            if let scalar = Unicode.Scalar(code) { return scalar }
        default: break
        }
        throw malformed("a valid escape sequence", at: start)
    }

    private mutating func hexadecimal() throws(Problem) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next(), let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw malformed("four hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
        }
        return code
    }
}
