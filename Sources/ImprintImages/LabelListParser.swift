internal import Foundation
internal import ImprintCore

/// A photo in a list.
struct LabelListEntry {
    /// The line, from 1.
    let line: Int
    /// The path as written.
    let path: String
    let labels: [String]
}

/// A parser of lists.
struct LabelListParser {
    private let file: URL
    private let bytes: ArraySlice<UInt8>

    /// Reads the file.
    init(_ file: URL) throws {
        self.file = file
        bytes = try ImageFile.read(file).withoutByteOrderMark
    }

    func entries() throws(LabelListError) -> [LabelListEntry] {
        let kind = FileKind(Array(bytes))
        switch kind {
        case .text(.xml) where BoxFormat(bytes, of: file) == .pascalVOC:
            throw fail(.hasBoxes(format: BoxFormat.pascalVOC.rawValue))
        case .text(.empty): throw fail(.otherKind(found: "empty"))
        case .text(.whiteSpace), .text(.json), .text(.plain), .unknown: break
        default: throw fail(.otherKind(found: kind.name))
        }
        guard String(validating: bytes, as: UTF8.self) != nil, !bytes.contains(0) else { throw fail(.notText) }
        do throws(LabelListError) {
            switch bytes.first(where: { !isSpace($0) }) {
            case nil: return []
            case UInt8(ascii: "["): return try array()
            case UInt8(ascii: "{"): return try lines()
            default: return try table()
            }
        } catch {
            if let format = BoxFormat(bytes, of: file) { throw fail(.hasBoxes(format: format.rawValue)) }
            if file.isYAML { throw fail(.otherKind(found: "YAML")) }
            throw error
        }
    }

    private func fail(_ problem: LabelListError.Problem, line: Int? = nil) -> LabelListError {
        LabelListError(file: file, line: line, problem: problem)
    }

    /// Returns a required column that is not among the names of columns; nil if there are all.
    private static func missingColumn(in names: some Collection<String>) -> String? {
        guard names.contains("photo") else { return "photo" }
        return names.contains { $0 == "label" || $0 == "labels" } ? nil : "label or labels"
    }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

    private func trimmed(_ text: some StringProtocol) -> String { text.trimmingWhiteSpace() }
}

// MARK: CSV

extension LabelListParser {
    private func table() throws(LabelListError) -> [LabelListEntry] {
        var rows = try rows()[...]
        guard let header = rows.popFirst() else { return [] }
        let names = header.fields.map { trimmed($0).lowercased() }
        let known = ["photo", "label", "labels"]
        guard names.contains(where: known.contains), names.count > 1 else {
            throw fail(.noHeader(found: header.fields.joined(separator: ",")), line: header.line)
        }
        if let unknown = zip(names, header.fields).first(where: { !known.contains($0.0) }) {
            throw fail(.unknownColumn(unknown.1, missing: Self.missingColumn(in: names)), line: header.line)
        }
        let pathIndices = names.indices.filter { names[$0] == "photo" }
        let labelIndices = names.indices.filter { names[$0] != "photo" }
        guard pathIndices.count == 1 else {
            throw fail(.wrongColumns(found: pathIndices.map { names[$0] }, expected: "photo"), line: header.line)
        }
        guard labelIndices.count == 1 else {
            throw fail(
                .wrongColumns(found: labelIndices.map { names[$0] }, expected: "label or labels"), line: header.line)
        }
        let mayBeEmpty = names[labelIndices[0]] == "labels"
        var entries: [LabelListEntry] = []
        for row in rows {
            guard row.fields.count == names.count else {
                throw fail(.fieldCount(found: row.fields.count, expected: names.count), line: row.line)
            }
            let path = row.fields[pathIndices[0]]
            guard !trimmed(path).isEmpty else { throw fail(.emptyPath, line: row.line) }
            let field = trimmed(row.fields[labelIndices[0]])
            let labels =
                field.isEmpty && mayBeEmpty
                ? [] : field.split(separator: ";", omittingEmptySubsequences: false).map { trimmed($0) }
            guard !labels.contains(where: isBlank) else { throw fail(.emptyLabel(photo: path), line: row.line) }
            entries.append(LabelListEntry(line: row.line, path: path, labels: labels))
        }
        return entries
    }

    /// Splits the text into rows of fields, without empty lines.
    private func rows() throws(LabelListError) -> [(line: Int, fields: [String])] {
        let (quote, comma, lineFeed, carriageReturn) = (
            UInt8(ascii: "\""), UInt8(ascii: ","), UInt8(ascii: "\n"), UInt8(ascii: "\r")
        )
        var rows: [(line: Int, fields: [String])] = []
        var (line, firstLine, index) = (1, 1, bytes.startIndex)
        var fields: [String] = []
        var field: [UInt8] = []
        var wasQuoted = false
        func endField() {
            fields.append(text(field))
            (field, wasQuoted) = ([], false)
        }
        func endRow() {
            let isBlank = fields.isEmpty && !wasQuoted && field.allSatisfy(isSpace)
            if !isBlank {
                endField()
                rows.append((firstLine, fields))
            }
            (fields, field, wasQuoted) = ([], [], false)
        }
        while index < bytes.endIndex {
            let byte = bytes[index]
            index += 1
            switch byte {
            case quote where field.isEmpty && !wasQuoted:
                wasQuoted = true
                while true {
                    guard index < bytes.endIndex else { throw fail(.invalidQuotes, line: firstLine) }
                    let inner = bytes[index]
                    index += 1
                    if inner == lineFeed { line += 1 }
                    if inner != quote {
                        field.append(inner)
                    } else if index < bytes.endIndex, bytes[index] == quote {
                        field.append(quote)
                        index += 1
                    } else {
                        break
                    }
                }
            case comma: endField()
            case lineFeed, carriageReturn:
                if byte == carriageReturn, index < bytes.endIndex, bytes[index] == lineFeed { index += 1 }
                endRow()
                line += 1
                firstLine = line
            default:
                guard !wasQuoted else { throw fail(.invalidQuotes, line: firstLine) }
                field.append(byte)
            }
        }
        endRow()
        return rows
    }
}

// MARK: JSON

extension LabelListParser {
    /// Parses one object per line.
    private func lines() throws(LabelListError) -> [LabelListEntry] {
        var entries: [LabelListEntry] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.allSatisfy(isSpace) {
            entries.append(try entry(line, line: index + 1))
        }
        return entries
    }

    /// Parses an array of objects, each separately, so that errors have its line.
    private func array() throws(LabelListError) -> [LabelListEntry] {
        var entries: [LabelListEntry] = []
        var (line, depth, start, startLine) = (1, 0, bytes.startIndex, 1)
        var (isFirst, needsComma) = (true, false)
        var strings = JSONStrings()
        func unexpected() -> LabelListError {
            fail(
                .invalidJSON(reason: "the array contains something other than objects separated by commas"), line: line)
        }
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            defer { index += 1 }
            if byte == UInt8(ascii: "\n") { line += 1 }
            if strings.contains(byte) {
                guard depth >= 2 else { throw unexpected() }
                continue
            }
            switch (depth, byte) {
            case (_, _) where isSpace(byte): continue
            case (0, UInt8(ascii: "[")) where isFirst: (depth, isFirst) = (1, false)
            case (1, UInt8(ascii: ",")) where needsComma: needsComma = false
            case (1, UInt8(ascii: "{")) where !needsComma: (depth, start, startLine) = (2, index, line)
            case (1, UInt8(ascii: "]")) where needsComma || entries.isEmpty: depth = 0
            case (2..., UInt8(ascii: "{")), (2..., UInt8(ascii: "[")): depth += 1
            case (3..., UInt8(ascii: "}")), (3..., UInt8(ascii: "]")): depth -= 1
            case (2, UInt8(ascii: "}")):
                entries.append(try entry(bytes[start...index], line: startLine))
                (depth, needsComma) = (1, true)
            case (2..., _): continue
            default: throw unexpected()
            }
        }
        guard depth == 0 else { throw fail(.invalidJSON(reason: "the array does not end"), line: line) }
        return entries
    }

    private func entry(_ json: ArraySlice<UInt8>, line: Int) throws(LabelListError) -> LabelListEntry {
        func invalid(_ reason: String) -> LabelListError { fail(.invalidJSON(reason: reason), line: line) }
        guard let value = try? JSONSerialization.jsonObject(with: Data(json)), let object = value as? [String: Any]
        else { throw invalid("the entry is not a JSON object") }
        if let unknown = object.keys.sorted().first(where: { !["photo", "label", "labels"].contains($0) }) {
            throw fail(.unknownColumn(unknown, missing: Self.missingColumn(in: object.keys)), line: line)
        }
        guard let path = object["photo"] as? String else { throw invalid("\"photo\" is missing or not a string") }
        guard !trimmed(path).isEmpty else { throw fail(.emptyPath, line: line) }
        let labels: [String]
        switch (object["label"], object["labels"]) {
        case (let label as String, nil): labels = [trimmed(label)]
        case (nil, let several as [String]): labels = several.map { trimmed($0) }
        case (nil, nil): throw invalid("\"label\" and \"labels\" are missing")
        case (_?, _?): throw invalid("found both \"label\" and \"labels\"")
        case (_?, nil): throw invalid("\"label\" is not a string")
        case (nil, _?): throw invalid("\"labels\" is not a list of strings")
        }
        guard !labels.contains(where: isBlank) else { throw fail(.emptyLabel(photo: path), line: line) }
        return LabelListEntry(line: line, path: path, labels: labels)
    }
}

/// Finds the strings in JSON.
struct JSONStrings {
    private var isOpen = false
    private var isEscaped = false

    /// Returns whether the next byte of the JSON is in a string, or one of its quotes.
    mutating func contains(_ byte: UInt8) -> Bool {
        guard isOpen else {
            isOpen = byte == UInt8(ascii: "\"")
            return isOpen
        }
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isOpen = false
        }
        return true
    }
}
