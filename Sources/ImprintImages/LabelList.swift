public import Foundation
internal import ImprintCore

/// A list of photos with their labels, in a CSV or JSON file.
///
/// The content decides the format:
///
/// - CSV (RFC 4180) with the header `photo,label`, or `photo,labels`: one line per photo. Semicolons separate several labels of a photo. The
///   column `labels` may be empty, for a photo that has none of the labels.
/// - JSON: an array of objects such as `{"photo": "a.jpg", "labels": ["cat", "dog"]}`, or `{"photo": "a.jpg", "label": "cat"}`.
/// - JSON Lines: one such object per line.
///
/// Relative paths start at the folder of the list. The file is UTF-8, with or without a byte order mark. Lines end with LF or CRLF. Spaces around
/// labels are ignored, and so are empty lines. A photo with the same labels in several lines counts once.
///
/// ```swift
/// let trainer = ClassifierTrainer(photos: try LabelList(at: URL(filePath: "photos.csv")))
/// ```
public struct LabelList: TrainingSource {
    /// The file of the list.
    public let url: URL
    /// The labels of the photos, in the order of their Unicode scalars.
    public let labels: [String]
    /// The photos, by labels and then by path, in the order of Unicode scalars; the order of the lines does not matter.
    public let items: [TrainingPhoto]
    /// The SHA-256 digest of a line "path, tab, size in bytes, and a tab before each label" for every photo, in hexadecimal.
    public let digest: String
    private let paths: [URL: String]

    /// The path of the file.
    public var name: String { url.displayPath }

    /// Returns the path of a photo as written in the list.
    public func path(of item: TrainingPhoto) -> String { paths[item.url] ?? item.url.displayPath }

    /// Reads a list; the photos must exist, but are not decoded.
    /// - Parameters:
    ///   - url: The CSV or JSON file.
    ///   - minimumLabels: The minimum number of labels: 2 for training, 1 is enough for evaluation. If a photo has several labels or none,
    ///     1 is always enough, because a multi-label model can learn a single label.
    /// - Throws: `LabelListError` with the line of the first problem; `ImageError.unreadable` if the file cannot be read.
    public init(at url: URL, minimumLabels: Int = 2) throws {
        let entries = try LabelListParser(url).entries()
        guard !entries.isEmpty else { throw LabelListError(file: url, problem: .noPhotos) }
        // Swift compares strings by canonical equivalence, so labels that look the same are the same.
        let labels = Set(entries.flatMap(\.labels)).sorted(by: precedes)
        let indices = Dictionary(uniqueKeysWithValues: labels.enumerated().map { ($1, $0) })
        let folder = url.deletingLastPathComponent()
        var photos: [(item: TrainingPhoto, path: String)] = []
        // Bytes, because file names that differ only in their Unicode normalization are equal strings.
        var earlier: [[UInt8]: (line: Int, labels: Set<String>)] = [:]
        for entry in entries {
            func fail(_ problem: LabelListError.Problem) -> LabelListError {
                LabelListError(file: url, line: entry.line, problem: problem)
            }
            let file = entry.path.hasPrefix("/") ? URL(filePath: entry.path) : folder.appending(path: entry.path)
            let set = Set(entry.labels)
            if let first = earlier.updateValue(
                (entry.line, set), forKey: Array(file.standardizedFileURL.displayPath.utf8))
            {
                guard first.labels == set else {
                    throw fail(.differentLabels(photo: entry.path, line: first.line))
                }
                continue
            }
            guard FileStatus(file)?.isFile == true else {
                throw fail(isURL(entry.path) ? .url(entry.path) : .missingPhoto(entry.path))
            }
            photos.append((TrainingPhoto(url: file, labels: set.compactMap { indices[$0] }), entry.path))
        }
        let minimum = photos.contains { $0.item.labels.count != 1 } ? min(minimumLabels, 1) : minimumLabels
        guard labels.count >= minimum else {
            throw LabelListError(file: url, problem: .tooFewLabels(found: labels, minimum: minimum))
        }
        photos.sort { first, second in
            first.item.labels == second.item.labels
                ? precedes(first.path, second.path)
                : first.item.labels.lexicographicallyPrecedes(second.item.labels)
        }
        var hash = SHA256()
        for photo in photos {
            let names = photo.item.labels.map { "\t\(labels[$0])" }.joined()
            hash.update("\(photo.path)\t\(photo.item.byteCount)\(names)\n".utf8Span.span.bytes)
        }
        self.url = url
        self.labels = labels
        items = photos.map(\.item)
        paths = Dictionary(photos.map { ($0.item.url, $0.path) }, uniquingKeysWith: { first, _ in first })
        digest = hash.hexadecimal
    }
}

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
        let all = try ImageFile.read(file)
        bytes = all.starts(with: [0xEF, 0xBB, 0xBF]) ? all[3...] : all[...]
    }

    func entries() throws(LabelListError) -> [LabelListEntry] {
        let kind = FileKind(Array(bytes))
        switch kind {
        case .text(.xml) where isPascalVOC: throw fail(.hasBoxes(format: "Pascal VOC"))
        case .text(.empty), .text(.whiteSpace), .text(.json), .text(.plain), .unknown: break
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
            if let format = formatOfBoxes { throw fail(.hasBoxes(format: format)) }
            if isYAML { throw fail(.otherKind(found: "YAML")) }
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

    private func trimmed(_ text: some StringProtocol) -> String { text.trimmingCharacters(in: .whitespacesAndNewlines) }
}

// MARK: Annotations

extension LabelListParser {
    /// The format of bounding boxes that a wrong file contains, or nil.
    private var formatOfBoxes: String? {
        if isPascalVOC { return "Pascal VOC" }
        if isYAML { return isYOLO ? "YOLO" : nil }
        let keys = keysOfFirstObject
        guard keys.contains("annotations") || keys.contains("annotation") else { return nil }
        if keys.contains("images") { return "COCO" }
        return keys.contains("image") || keys.contains("imagefilename") ? "Create ML" : nil
    }

    /// Whether the file is an XML file of Pascal VOC.
    private var isPascalVOC: Bool {
        let start = text(bytes.prefix(FileKind.prefixLength)).drop(while: \.isWhitespace)
        return start.hasPrefix("<") && start.contains("<annotation")
    }

    /// Whether the file has the extension of a YAML file.
    private var isYAML: Bool { ["yaml", "yml"].contains(file.pathExtension.lowercased()) }

    /// Whether a YAML file describes a data set of YOLO: it names the labels, and folders or lists of photos.
    private var isYOLO: Bool {
        let lines = text(bytes).split(whereSeparator: \.isNewline)
        func has(_ key: String) -> Bool { lines.contains { $0.hasPrefix("\(key):") } }
        return has("names") && ["path", "train", "val"].contains(where: has)
    }

    /// The keys of the JSON object that the file is, or of the first object in its array.
    private var keysOfFirstObject: Set<String> {
        var keys: Set<String> = []
        var depth = 0
        var strings = JSONStrings()
        /// The last string, with its quotes.
        var string = bytes.startIndex..<bytes.startIndex
        for (index, byte) in zip(bytes.indices, bytes) {
            if strings.contains(byte) {
                string = (string.upperBound == index ? string.lowerBound : index)..<(index + 1)
                continue
            }
            switch byte {
            case UInt8(ascii: ":") where depth == 1: keys.insert(text(bytes[string].dropFirst().dropLast()))
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "["): depth += depth > 0 ? 1 : 0
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if depth <= 0 { return keys }
            default: continue
            }
        }
        return keys
    }
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
            guard !labels.contains("") else { throw fail(.emptyLabel(photo: path), line: row.line) }
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
        guard !labels.contains("") else { throw fail(.emptyLabel(photo: path), line: line) }
        return LabelListEntry(line: line, path: path, labels: labels)
    }
}

/// Finds the strings in JSON.
private struct JSONStrings {
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
