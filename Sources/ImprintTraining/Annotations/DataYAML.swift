internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The content of data.yaml in a YOLO data set, in the subset of YAML that data sets use, or of a list of classes instead.
///
/// - `names` is a list (`[a, b]`, or a line `- a` for each name) or a map from class numbers (`{0: a}`, or a line `0: a` for each).
/// - `train`, `val` (also `valid` or `validation`) and `test` are a path or a list of paths. The first name of `val` with paths counts.
/// - `path` is the folder that these paths start at.
///
/// Names and paths are plain or in quotes. The last one of equal keys counts.
struct DataYAML {
    private(set) var names: [Int: String] = [:]
    /// Whether the data set annotates keypoints; their lines look like polygons.
    let hasKeypoints: Bool
    /// The folder of the data set as written; nil if the file does not name it.
    private(set) var path: String?
    /// The paths of the photos of each part that the file names, as written.
    private(set) var parts: [DatasetPart: [String]] = [:]
    /// The keys that exist but have no paths, by the parts that they would name; only for parts that no other key names.
    private(set) var emptyKeys: [DatasetPart: String] = [:]
    /// The keys that are probably misspelt, and the keys that they resemble, in the order of the file.
    let misspeltKeys: [(key: String, known: String)]
    /// The probable mistakes in the keys; empty if there are none.
    private(set) var warnings: [String] = []
    private let file: URL
    /// The lines, without comments.
    private let lines: [Substring]

    init(_ file: URL) throws(BoxAnnotationsError) {
        self.file = file
        lines = try annotationText(file).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { BoxFormat.withPlainKey(Self.withoutComment($0)) }
        hasKeypoints = lines.contains { $0.hasPrefix("kpt_shape:") }
        let keys = Self.keys(in: lines)
        let keyNames = Set(keys.map(\.name))
        misspeltKeys = keys.compactMap { key in
            // A key beside the known one is probably another property of the data set, such as name beside names.
            guard let known = Self.knownKey(resembling: key.name),
                !keyNames.contains(known) || known == key.name.lowercased()
            else { return nil }
            return (key: key.name, known: known)
        }
        try checkTabs()
        try checkStyle()
        try readNames()
        path = try paths("path").first
        var ignoredKeys: [String] = []
        for part in DatasetPart.allCases {
            let aliases = part == .validation ? Self.validationAliases : []
            let known = ([part.yamlKey] + aliases).filter(keyNames.contains)
            var used: String?
            for key in known {
                let paths = try self.paths(key)
                guard !paths.isEmpty else { continue }
                if let used {
                    guard paths != parts[part] else { continue }
                    ignoredKeys.append("ignored the key \(key), because the key \(used) also names the \(part) set")
                } else {
                    parts[part] = paths
                    used = key
                }
            }
            if used == nil { emptyKeys[part] = known.first }
        }
        warnings = misspeltKeys.map { "ignored the key \($0.key), which resembles \($0.known)" } + ignoredKeys
        warnings += Self.knownKeys.compactMap { known -> String? in
            let lines = keys.filter { $0.name == known }.map(\.line)
            guard lines.count > 1, let last = lines.last else { return nil }
            return "\(lines.count) lines have the key \(known); the last one counts, line \(last)"
        }
        if case .text(let text)? = try value("nc")?.value, let count = Int(text), count != names.count {
            warnings.append("nc is \(count), but names has \(counted(names.count, "name"))")
        }
        let empty = DatasetPart.allCases.compactMap { emptyKeys[$0] }
        if parts.isEmpty, !empty.isEmpty {
            warnings.append(
                "\(listed(empty)) \(empty.count == 1 ? "names" : "name") no path, so data.yaml does not split the "
                    + "photos; a split needs paths, such as train: images/train")
        }
    }

    /// Reads a list of classes, such as classes.txt: one name per line, in the order of the class numbers.
    init(listOfClasses file: URL) throws(BoxAnnotationsError) {
        (self.file, lines, hasKeypoints, misspeltKeys) = (file, [], false, [])
        var classes = try annotationText(file).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { String(Self.trimmed($0)) }
        while classes.last.map(isBlank) == true { classes.removeLast() }
        guard !classes.isEmpty else {
            throw .invalidEntry(
                file: file, entry: "", found: "the list is empty", expected: "the name of a class in each line")
        }
        for (index, name) in classes.enumerated() {
            guard !isBlank(name) else {
                throw .invalidEntry(
                    file: file, entry: "line \(index + 1)", found: "the line is blank",
                    expected: "the name of class \(index)")
            }
            names[index] = name
        }
    }

    // MARK: Keys

    /// Other keys for the paths of the validation set.
    private static let validationAliases = ["valid", "validation"]

    /// The keys that Imprint reads.
    private static let knownKeys = ["path", "train", "val", "test", "names", "nc", "kpt_shape"] + validationAliases

    /// Whether a misspelt key probably names the photos of a part.
    var hasMisspeltPart: Bool {
        let keys = DatasetPart.allCases.map(\.yamlKey) + Self.validationAliases
        return misspeltKeys.contains { keys.contains($0.known) }
    }

    /// Returns the keys at the start of lines, with the numbers of their lines, from 1.
    private static func keys(in lines: [Substring]) -> [(name: String, line: Int)] {
        lines.enumerated().compactMap { index, line -> (name: String, line: Int)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let name = line[..<colon]
            guard name.first?.isLetter == true, name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else {
                return nil
            }
            return (name: String(name), line: index + 1)
        }
    }

    /// Returns the known key that a misspelt key probably means; otherwise nil.
    ///
    /// The keys differ in case, in one letter, or in the order of letters.
    private static func knownKey(resembling key: String) -> String? {
        guard !knownKeys.contains(key), key.count <= 20 else { return nil }
        let key = key.lowercased()
        // Any two letters are near "nc".
        return knownKeys.first { known in
            known == key || (known.count > 2 && (editDistance(known, key) <= 1 || known.sorted() == key.sorted()))
        }
    }

    /// Throws an error if the indentation of a line has a tab, which YAML forbids.
    private func checkTabs() throws(BoxAnnotationsError) {
        for (index, line) in lines.enumerated() where !Self.trimmed(line).isEmpty {
            guard line.first == "\t" else { continue }
            throw .invalidEntry(
                file: file, entry: "line \(index + 1)", found: "the line starts with a tab",
                expected: "spaces, because YAML does not allow tabs before a key")
        }
    }

    /// Throws an error if the whole content is in braces, because Imprint reads one key per line.
    private func checkStyle() throws(BoxAnnotationsError) {
        for (index, line) in lines.enumerated() {
            var content = Self.trimmed(line)
            if content.hasPrefix("---") { content = Self.trimmed(content.dropFirst(3)) }
            guard !content.isEmpty else { continue }
            guard content.first == "{" else { return }
            throw .invalidEntry(
                file: file, entry: "line \(index + 1)", found: "the keys are in braces (flow style)",
                expected: "one key per line without braces, such as train: images/train")
        }
    }

    private func fail(_ found: String, key: String = "names", line: Int?) -> BoxAnnotationsError {
        .invalidEntry(
            file: file, entry: line.map { "line \($0)" } ?? "", found: found,
            expected: key == "names"
                ? "the names of the classes, such as names: [cat, dog]" : "a path, such as train: images/train")
    }

    /// Returns the end of a sentence about keys that do not exist, which names the keys that resemble them.
    func misspelt(_ missing: [String]) -> String {
        let keys = misspeltKeys.filter { missing.contains($0.known) }.map(\.key)
        return keys.isEmpty ? "" : ", but the similar key \(listed(keys))"
    }

    // MARK: Names

    private mutating func readNames() throws(BoxAnnotationsError) {
        guard let (line, value) = try self.value("names") else {
            throw fail("there is no key names" + misspelt(["names"]), line: nil)
        }
        switch value {
        case .text(let text): throw fail("names is \"\(text.prefix(40))\", not a list", line: line)
        case .items(let items):
            guard !items.isEmpty else { throw fail("names is empty", line: line) }
            for item in items {
                if item.isPair {
                    try add(pair: item.text, line: item.line)
                } else {
                    try add(item.text, index: names.count, line: item.line)
                }
            }
        }
    }

    private mutating func add(_ name: Substring, index: Int, line: Int) throws(BoxAnnotationsError) {
        guard let text = Self.scalar(Self.trimmed(name)), !isBlank(text) else {
            let found = String(name.prefix(40))
            throw fail("\(isBlank(found) ? quotedBlank(found) : "\"\(found)\"") is not a name", line: line)
        }
        guard names.updateValue(text, forKey: index) == nil else {
            throw fail("the class \(index) has two names", line: line)
        }
    }

    private mutating func add(pair: Substring, line: Int) throws(BoxAnnotationsError) {
        guard let colon = pair.firstIndex(of: ":"), let key = Self.scalar(Self.trimmed(pair[..<colon])),
            let index = Int(key), index >= 0
        else { throw fail("\"\(pair.prefix(40))\" has no class number", line: line) }
        try add(pair[pair.index(after: colon)...], index: index, line: line)
    }

    // MARK: Paths

    /// Returns the path or paths of a key; none if it is missing, empty or null.
    private func paths(_ key: String) throws(BoxAnnotationsError) -> [String] {
        guard let (line, value) = try self.value(key) else { return [] }
        let items =
            switch value {
            case .text(let text): [Item(text: text, isPair: false, line: line)]
            case .items(let items): items
            }
        var paths: [String] = []
        for item in items {
            // A path may be in the line after its key.
            guard !(item.isPair && item.text.contains(":")), let path = Self.scalar(item.text), !path.contains("\0")
            else {
                throw fail("\(key) has \"\(item.text.prefix(40))\", which is not a path", key: key, line: item.line)
            }
            if !["", "~", "null"].contains(path) { paths.append(path) }
        }
        return paths
    }

    // MARK: Values

    /// The value of a key.
    private enum Value {
        case text(Substring)
        case items([Item])
    }

    /// An item of a list, or an entry of a map with its key.
    private struct Item {
        let text: Substring
        let isPair: Bool
        /// The line, from 1.
        let line: Int
    }

    /// Returns the value of a key, and its line from 1; nil if there is no such key.
    private func value(_ key: String) throws(BoxAnnotationsError) -> (line: Int, value: Value)? {
        guard let index = lines.lastIndex(where: { $0.hasPrefix("\(key):") }) else { return nil }
        let text = Self.trimmed(lines[index].dropFirst(key.count + 1))
        let value: Value
        switch text.first {
        case nil: value = .items(blockItems(from: index + 1))
        case "[", "{": value = .items(try flowItems([text] + lines[(index + 1)...], key: key, line: index + 1))
        default: value = .text(text)
        }
        return (index + 1, value)
    }

    /// Returns the items in the lines after a key.
    private func blockItems(from start: Int) -> [Item] {
        var items: [Item] = []
        for (offset, line) in lines[start...].enumerated() {
            let content = Self.trimmed(line)
            if content.isEmpty { continue }
            let isListItem = content.hasPrefix("- ") || content == "-"
            // The next key of the file, or the end of the document.
            if !isListItem, line.first?.isWhitespace != true { break }
            let text = isListItem ? Self.trimmed(content.dropFirst()) : content
            items.append(Item(text: text, isPair: !isListItem, line: start + offset + 1))
        }
        return items
    }

    /// Returns the items in brackets or braces, which may extend over several lines.
    private func flowItems(_ lines: [Substring], key: String, line: Int) throws(BoxAnnotationsError) -> [Item] {
        let text = lines.joined(separator: "\n")
        let isMap = text.first == "{"
        var items: [Item] = []
        var (quotes, line) = (YAMLQuotes(), line)
        var start = text.index(after: text.startIndex)
        for index in text.indices.dropFirst() {
            let character = text[index]
            if character.isNewline { line += 1 }
            guard !quotes.contains(character), [",", "]", "}"].contains(character) else { continue }
            let item = Self.trimmed(text[start..<index])
            let isEnd = character != ","
            // A comma may follow the last item.
            if !(isEnd && item.isEmpty) { items.append(Item(text: item, isPair: isMap, line: line)) }
            if isEnd { return items }
            start = text.index(after: index)
        }
        throw fail("\(key) does not end", key: key, line: line)
    }

    private static func trimmed(_ text: some StringProtocol) -> Substring {
        Substring(text.trimmingWhiteSpace())
    }

    /// Removes the comment at the end of a line.
    private static func withoutComment(_ line: Substring) -> Substring {
        var quotes = YAMLQuotes()
        var previous: Character = " "
        for index in line.indices {
            let character = line[index]
            if !quotes.contains(character), character == "#", previous.isWhitespace { return line[..<index] }
            previous = character
        }
        return line
    }

    /// Returns the text of a plain or quoted scalar; nil if it is empty, invalid or of another kind.
    private static func scalar(_ text: Substring) -> String? {
        guard let first = text.first else { return nil }
        if first == "'" || first == "\"" {
            guard text.count >= 2, text.last == first else { return nil }
            let inner = text.dropFirst().dropLast()
            if first == "'" {
                let unescaped = inner.replacing("''", with: "\u{0}")
                return unescaped.contains("'") ? nil : trimmed(unescaped.replacing("\u{0}", with: "'")).description
            }
            // JSON has the escapes that names need.
            return (try? JSONDecoder().decode(String.self, from: Data("\"\(inner)\"".utf8))).map {
                trimmed($0).description
            }
        }
        return "[]{}&*!|>%@`,".contains(first) ? nil : text.description
    }
}

/// Finds the quoted scalars in YAML; a quote within a word is an apostrophe.
private struct YAMLQuotes {
    private var quote: Character?
    private var isEscaped = false
    /// The last character that is neither a space nor quoted, or the last quote.
    private var last: Character = ","

    /// Returns whether the next character of the text is quoted or a quote.
    mutating func contains(_ character: Character) -> Bool {
        guard let open = quote else {
            let isQuote = character == "\"" || character == "'"
            // A scalar starts after these; a quote after a quote stands for itself.
            if isQuote, last == character || ",[{:-".contains(last) {
                quote = character
                return true
            }
            if !character.isWhitespace { last = character }
            return false
        }
        if isEscaped {
            isEscaped = false
        } else if open == "\"", character == "\\" {
            isEscaped = true
        } else if character == open {
            (quote, last) = (nil, character)
        }
        return true
    }
}
