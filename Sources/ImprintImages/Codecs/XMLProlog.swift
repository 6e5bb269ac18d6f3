/// The part of an XML file before its first element: white space, comments, processing instructions and the document type.
enum XMLProlog: Equatable {
    /// The prolog ends with an element of this name.
    case element(String)
    /// The bytes end within the prolog.
    case incomplete
    /// The bytes are not XML, or are HTML.
    case other

    /// Reads the prolog at the start of a text in UTF-8.
    /// - Parameters:
    ///   - bytes: The start of the text.
    ///   - isWhole: Whether no more bytes follow; otherwise a name at the end may be incomplete.
    init(_ bytes: [UInt8], isWhole: Bool) {
        var rest = bytes.withoutByteOrderMark
        while true {
            rest = rest.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
            guard let first = rest.first else {
                self = .incomplete
                return
            }
            guard first == UInt8(ascii: "<") else {
                self = .other
                return
            }
            if rest.starts(with: "<!--".utf8) {
                rest = Self.after("-->", in: rest.dropFirst(4))
            } else if rest.starts(with: "<?".utf8) {
                rest = Self.after("?>", in: rest.dropFirst(2))
            } else if rest.starts(with: "<!".utf8) {
                guard !String(decoding: rest.prefix(14), as: UTF8.self).lowercased().hasPrefix("<!doctype html") else {
                    self = .other
                    return
                }
                rest = Self.afterDocumentType(rest.dropFirst(2))
            } else {
                let name = rest.dropFirst().prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ">") }
                self =
                    isWhole || name.endIndex < rest.endIndex
                    ? .element(String(decoding: name, as: UTF8.self)) : .incomplete
                return
            }
        }
    }

    /// Returns the bytes after the first occurrence of a text; none if it is missing.
    private static func after(_ end: String, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = Array(end.utf8)
        var rest = bytes
        while let index = rest.firstIndex(of: end[0]) {
            rest = rest[index...]
            if rest.starts(with: end) { return rest.dropFirst(end.count) }
            rest = rest.dropFirst()
        }
        return []
    }

    /// Returns the bytes after a document type, which may contain declarations in brackets; none if its end is missing.
    private static func afterDocumentType(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var (depth, rest) = (0, bytes)
        var quote: UInt8?
        while let byte = rest.first {
            if quote == nil, rest.starts(with: "<!--".utf8) {
                rest = after("-->", in: rest.dropFirst(4))
                continue
            }
            rest = rest.dropFirst()
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                if quote == nil { quote = byte } else if quote == byte { quote = nil }
            case _ where quote != nil: continue
            case UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ">") where depth <= 0: return rest
            default: continue
            }
        }
        return rest
    }
}
