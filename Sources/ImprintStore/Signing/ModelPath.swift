/// The path of a file within a model, or the name of a part of a file (`path:start:end`), compared by its bytes.
///
/// `String` compares characters by Unicode equivalence: it does not distinguish the composed and the decomposed form of "é", and it does
/// not find the separator in "a/" followed by a combining character. File systems compare bytes.
struct ModelPath: Hashable, Comparable {
    /// The path of the file of a model that is one file.
    static let file = ModelPath(".")

    let text: String

    init(_ text: String) { self.text = text }

    static func == (first: ModelPath, second: ModelPath) -> Bool { first.text.utf8.elementsEqual(second.text.utf8) }

    static func < (first: ModelPath, second: ModelPath) -> Bool {
        first.text.utf8.lexicographicallyPrecedes(second.text.utf8)
    }

    func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0xFF))
    }

    /// The names of the folders and of the file.
    var components: [ModelPath] { split("/") }

    /// The paths of the folders that contain the file, from the inside out.
    var folders: [ModelPath] {
        text.utf8.indices.reversed().filter { text.utf8[$0] == UInt8(ascii: "/") }.map {
            ModelPath(String(Substring(text.utf8[..<$0])))
        }
    }

    /// Returns the path of an entry of the folder with this path.
    func appending(_ name: String) -> ModelPath { ModelPath(text + "/" + name) }

    /// Returns the parts between separators.
    func split(_ separator: Unicode.Scalar) -> [ModelPath] {
        text.utf8.split(separator: UInt8(ascii: separator), omittingEmptySubsequences: false).map {
            ModelPath(String(Substring($0)))
        }
    }
}
