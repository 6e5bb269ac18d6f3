internal import Foundation

/// Swift identifiers for labels and files with arbitrary names.
enum Identifier {
    /// Returns a case name for each label: its words in camel case, keywords in backticks.
    ///
    /// The names are unique: if several labels have the same name, the first keeps it, and the others are numbered from 2.
    static func cases(for labels: [String]) -> [String] {
        let names = labels.map(caseName)
        // A numbered name must not equal the name of another label.
        var taken = Set(names).union(reservedCases)
        var assigned = reservedCases
        return names.map { name in
            var result = name
            if !assigned.insert(name).inserted {
                var number = 2
                while !taken.insert("\(name)\(number)").inserted { number += 1 }
                result = "\(name)\(number)"
            }
            return keywords.contains(result) ? "`\(result)`" : result
        }
    }

    /// Returns the name of a type for a file: its words in upper camel case.
    static func type(for text: String) -> String {
        let name = validIdentifier(words(of: text).map(capitalized).joined())
        return reservedTypes.contains(name) ? "\(name)Model" : name
    }

    private static func caseName(_ label: String) -> String {
        let words = words(of: label)
        return validIdentifier(uncapitalized(words[0]) + words.dropFirst().map(capitalized).joined())
    }

    /// The members of every generated enumeration, and the cases of its optional, which a `switch` would confuse with its own.
    private static let reservedCases: Set = ["allCases", "init", "none", "self", "some"]

    /// The types that would hide a name in the generated source, or that Swift rejects.
    private static let reservedTypes: Set = [
        "Any", "Bundle", "Foundation", "Imprint", "Label", "Protocol", "Self", "Swift", "Type",
    ]

    /// The keywords that begin with a lower-case letter, except contextual keywords, which may be names.
    private static let keywords: Set = [
        "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
        "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import",
        "in", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public",
        "repeat", "rethrows", "return", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true",
        "try", "typealias", "var", "where", "while",
    ]
}

/// Returns the words of a text, at least one: its runs of letters and digits, or else the Unicode names of its characters.
private func words(of text: String) -> [String] {
    // Swift compares identifiers byte by byte, and keyboards enter composed characters.
    let scalars = Array(text.precomposedStringWithCanonicalMapping.unicodeScalars).filter {
        !$0.properties.isDefaultIgnorableCodePoint && $0 != "'" && $0 != "’"
    }
    let words = runs(in: scalars)
    guard words.isEmpty else { return words }
    let named = scalars.compactMap(\.properties.name).flatMap { runs(in: Array($0.lowercased().unicodeScalars)) }
    return named.isEmpty ? ["unnamed"] : named
}

private func runs(in scalars: [Unicode.Scalar]) -> [String] {
    scalars.split { !isPart($0) }.map { String(String.UnicodeScalarView($0)) }
}

/// Whether a character may be part of an identifier and does not separate words.
func isPart(_ scalar: Unicode.Scalar) -> Bool {
    // Swift parses the Hangzhou numerals as operators.
    scalar.properties.isXIDContinue && scalar.properties.generalCategory != .connectorPunctuation
        && !("〡"..."〩" ~= scalar)
}

private func capitalized(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

/// Converts a word to lower camel case: "Logo" to "logo", "URL" to "url", "HTMLPage" to "htmlPage".
private func uncapitalized(_ word: String) -> String {
    var count = word.prefix(while: \.isUppercase).count
    if count > 1, word.dropFirst(count).first?.isLowercase == true { count -= 1 }
    return word.prefix(count).lowercased() + word.dropFirst(count)
}

/// Prefixes a name with an underscore if its first character cannot start an identifier, such as a digit or a combining mark.
private func validIdentifier(_ name: String) -> String {
    name.unicodeScalars.first?.properties.isXIDStart == true ? name : "_\(name)"
}
