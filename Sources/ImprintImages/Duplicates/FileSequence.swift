internal import Foundation

/// The position of a photo in the numbering of a camera: `IMG_3123.jpg` is number 3123 of the series `IMG_`.
struct SequencePosition: Hashable {
    /// The prefix before the number: the folders below the label's folder, and the start of the name.
    let series: String
    /// The last number in the name.
    let number: Int

    init(series: String, number: Int) {
        self.series = series
        self.number = number
    }

    /// Creates the position of a path relative to the folder of its label; nil if the name has no number.
    init?(_ path: String) {
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        let name = path.dropFirst(folder.count)
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name
        let isDigit = { (character: Character) in ("0"..."9").contains(character) }
        guard let last = stem.lastIndex(where: isDigit) else { return nil }
        let start = stem[...last].lastIndex { !isDigit($0) }.map { stem.index(after: $0) } ?? stem.startIndex
        guard let number = Int(stem[start...last]) else { return nil }
        series = folder + String(stem[..<start])
        self.number = number
    }
}
