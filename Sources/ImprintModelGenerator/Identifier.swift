internal import Foundation

/// Names in Swift code for labels and files, which may be called anything.
enum Identifier {
    /// A name for each label: its words in camel case, keywords in backticks.
    ///
    /// All are different. Where several labels come to the same name, the first keeps it, and the others are numbered from 2.
    static func cases(for labels: [String]) -> [String] {
        let names = labels.map(caseName)
        // A number must not make the name that another label has by itself.
        var taken = Set(names).union(members)
        var given = members
        return names.map { name in
            var result = name
            if !given.insert(name).inserted {
                var number = 2
                while !taken.insert("\(name)\(number)").inserted { number += 1 }
                result = "\(name)\(number)"
            }
            return keywords.contains(result) ? "`\(result)`" : result
        }
    }

    /// The name of a type for a file: its words, each with a capital.
    static func type(for text: String) -> String {
        let name = startable(words(of: text).map(capitalized).joined())
        return takenTypes.contains(name) ? "\(name)Model" : name
    }

    private static func caseName(_ label: String) -> String {
        let words = words(of: label)
        return startable(uncapitalized(words[0]) + words.dropFirst().map(capitalized).joined())
    }

    /// What every such enumeration has already, and what its optionals have, which a `switch` would take for a case.
    private static let members: Set = ["allCases", "init", "none", "self", "some"]

    /// Types that would hide what the generated source names, or that Swift refuses.
    private static let takenTypes: Set = [
        "Any", "Bundle", "Foundation", "Imprint", "Label", "Protocol", "Self", "Swift", "Type",
    ]

    /// The reserved words that begin with a small letter; those that are reserved in some places only may be names.
    private static let keywords: Set = [
        "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
        "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import",
        "in", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public",
        "repeat", "rethrows", "return", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true",
        "try", "typealias", "var", "where", "while",
    ]
}

/// The words of a text, at least one: its runs of letters and digits; if it has none, the names of its characters.
private func words(of text: String) -> [String] {
    // Swift compares identifiers by their bytes, and keyboards write composed characters.
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

/// Whether a character may be in an identifier and is more than a sign between words.
func isPart(_ scalar: Unicode.Scalar) -> Bool {
    // Swift takes the Hangzhou numerals for operators.
    scalar.properties.isXIDContinue && scalar.properties.generalCategory != .connectorPunctuation
        && !("〡"..."〩" ~= scalar)
}

private func capitalized(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

/// "Logo" as "logo", "URL" as "url", "HTMLPage" as "htmlPage".
private func uncapitalized(_ word: String) -> String {
    var count = word.prefix(while: \.isUppercase).count
    if count > 1, word.dropFirst(count).first?.isLowercase == true { count -= 1 }
    return word.prefix(count).lowercased() + word.dropFirst(count)
}

/// Digits and marks may not begin an identifier.
private func startable(_ name: String) -> String {
    name.unicodeScalars.first?.properties.isXIDStart == true ? name : "_\(name)"
}
