internal import Foundation

/// A plain font of strokes for captions on images, at any size.
///
/// A letter is drawn in a grid of 5 columns (0…4) and 9 rows (0…8) of unit squares: capitals span the rows 0 to 6, the baseline is row 6, and
/// descenders reach row 8. Letters are 6 units apart.
enum StrokeFont {
    /// A straight stroke in units of the grid; both ends are round.
    struct Stroke {
        let x1, y1, x2, y2: Float
    }

    /// The distance from one letter to the next, in units.
    static let advance: Float = 6

    /// The width of a stroke, in units.
    static let strokeWidth: Float = 0.85

    /// Returns a text in the letters of the font.
    ///
    /// Other scripts are transliterated to Latin if possible; the remaining characters become "?".
    static func letters(of text: String) -> String {
        let latin =
            text.unicodeScalars.allSatisfy(\.isASCII)
            ? text : text.applyingTransform(StringTransform("Any-Latin; Latin-ASCII"), reverse: false) ?? text
        return String(latin.map { strokes[$0] != nil ? $0 : $0.isWhitespace ? " " : "?" })
    }

    /// The strokes of each letter.
    static let strokes: [Character: [Stroke]] = outlines.mapValues { outline in
        outline.split(separator: ",").flatMap { line in
            let points = line.split(separator: " ").map { point in
                point.compactMap(\.wholeNumberValue).map(Float.init)
            }
            // A single point is a dot.
            let ends = points.count == 1 ? points : Array(points.dropFirst())
            return zip(points, ends).map { Stroke(x1: $0[0], y1: $0[1], x2: $1[0], y2: $1[1]) }
        }
    }

    /// The lines of each letter, separated by commas; each line connects points, written as column and row.
    private static let outlines: [Character: String] = [
        "A": "06 20 46,14 34", "B": "00 06 36 45 44 33 03,00 30 41 42 33", "C": "41 30 10 01 05 16 36 45",
        "D": "00 06 26 44 42 20 00", "E": "40 00 06 46,03 33", "F": "40 00 06,03 33",
        "G": "41 30 10 01 05 16 36 45 43 23", "H": "00 06,40 46,03 43", "I": "10 30,20 26,16 36",
        "J": "40 45 36 16 05", "K": "00 06,40 03 46", "L": "00 06 46", "M": "06 00 23 40 46", "N": "06 00 46 40",
        "O": "10 30 41 45 36 16 05 01 10", "P": "06 00 30 41 42 33 03", "Q": "10 30 41 45 36 16 05 01 10,24 46",
        "R": "06 00 30 41 42 33 03,23 46", "S": "41 30 10 01 02 13 33 44 45 36 16 05", "T": "00 40,20 26",
        "U": "00 05 16 36 45 40", "V": "00 26 40", "W": "00 16 22 36 40", "X": "00 46,40 06", "Y": "00 23 40,23 26",
        "Z": "00 40 06 46",
        "a": "12 32 43 46,44 14 05 16 36 45", "b": "00 06,03 12 32 43 45 36 16 05", "c": "43 32 12 03 05 16 36 45",
        "d": "40 46,43 32 12 03 05 16 36 45", "e": "04 44 43 32 12 03 05 16 36 45", "f": "40 30 21 26,12 32",
        "g": "42 47 38 18 07,43 32 12 03 05 16 36 45", "h": "00 06,03 12 32 43 46", "i": "20,22 26",
        "j": "30,32 37 28 18", "k": "00 06,42 04 46", "l": "20 25 36", "m": "06 02,03 12 23 26,23 32 43 46",
        "n": "02 06,03 12 32 43 46", "o": "12 32 43 45 36 16 05 03 12", "p": "02 08,03 12 32 43 45 36 16 05",
        "q": "42 48,43 32 12 03 05 16 36 45", "r": "02 06,04 22 32 43", "s": "43 32 12 03 14 34 45 36 16 05",
        "t": "20 25 36,02 42", "u": "02 05 16 36 45,42 46", "v": "02 26 42", "w": "02 16 23 36 42", "x": "02 46,42 06",
        "y": "02 05 16 36 45,42 47 38 18 07", "z": "02 42 06 46",
        "0": "10 30 41 45 36 16 05 01 10,23", "1": "11 20 26,16 36", "2": "01 10 30 41 42 06 46",
        "3": "01 10 30 41 42 33 44 45 36 16 05,23 33", "4": "36 30 04 44", "5": "40 00 02 32 43 45 36 16 05",
        "6": "30 10 01 05 16 36 45 44 33 13 04", "7": "00 40 16",
        "8": "10 30 41 42 33 13 02 01 10,13 04 05 16 36 45 44 33", "9": "16 36 45 41 30 10 01 02 13 33 42",
        " ": "", ".": "26", ",": "26 17", ":": "23,26", ";": "23,26 17", "!": "20 24,26", "?": "01 10 30 41 42 24,26",
        "'": "20 21", "\"": "10 11,30 31", "-": "13 33", "_": "07 47", "+": "21 25,03 43", "=": "02 42,04 44",
        "*": "21 25,02 44,42 04", "/": "06 40", "\\": "00 46", "|": "20 27", "(": "30 21 25 36", ")": "10 21 25 16",
        "[": "30 10 16 36", "]": "10 30 36 16", "{": "30 21 22 13 24 25 36", "}": "10 21 22 33 24 25 16",
        "<": "41 03 45", ">": "01 43 05", "%": "06 40,00 10 11 01 00,35 45 46 36 35",
        "&": "46 02 01 10 20 31 04 05 16 26 44", "#": "10 16,30 36,02 42,04 44",
        "$": "41 30 10 01 02 13 33 44 45 36 16 05,20 26", "@": "43 32 22 13 14 25 35 44 41 30 10 01 05 16 36",
        "^": "12 20 32", "~": "03 12 34 43", "`": "10 21", "…": "06,26,46",
    ]
}

extension RasterImage {
    /// Draws a text with the upper left corner of its first letter at a position, in pixels.
    ///
    /// - Parameters:
    ///   - text: Characters of `StrokeFont.strokes`; others leave a gap.
    ///   - unit: The size of a unit of the font, in pixels.
    mutating func draw(_ text: String, left: Float, top: Float, unit: Float, color: [UInt8]) {
        let reach = StrokeFont.strokeWidth / 2 * unit + 0.5
        for (index, letter) in text.enumerated() {
            guard let strokes = StrokeFont.strokes[letter], !strokes.isEmpty else { continue }
            let originX = left + Float(index) * StrokeFont.advance * unit
            let columns = pixels(from: originX - reach, to: originX + 4 * unit + reach, limit: width)
            let rows = pixels(from: top - reach, to: top + 8 * unit + reach, limit: height)
            for row in rows {
                for column in columns {
                    let (x, y) = (Float(column) + 0.5 - originX, Float(row) + 0.5 - top)
                    let distance = strokes.reduce(Float.infinity) { min($0, $1.distance(x, y, unit)) }
                    blend(color, min(max(reach - distance, 0), 1), column, row)
                }
            }
        }
    }

    /// Fills the part of a rectangle that is in the image; edges are in pixels.
    mutating func fill(left: Float, top: Float, right: Float, bottom: Float, color: [UInt8], opacity: Float = 1) {
        for row in pixels(from: top, to: bottom, limit: height) {
            for column in pixels(from: left, to: right, limit: width) { blend(color, opacity, column, row) }
        }
    }

    private func pixels(from start: Float, to end: Float, limit: Int) -> Range<Int> {
        let first = min(max(Int(start.rounded()), 0), limit)
        return first..<min(max(Int(end.rounded()), first), limit)
    }

    private mutating func blend(_ color: [UInt8], _ opacity: Float, _ column: Int, _ row: Int) {
        guard opacity > 0 else { return }
        let start = (row * width + column) * channels
        for channel in 0..<3 {
            let before = Float(samples[start + channel])
            samples[start + channel] = UInt8((before + (Float(color[channel]) - before) * opacity).rounded())
        }
    }
}

extension StrokeFont.Stroke {
    /// Returns the distance of a point from the stroke's line, in pixels.
    fileprivate func distance(_ x: Float, _ y: Float, _ unit: Float) -> Float {
        let (startX, startY) = (x1 * unit, y1 * unit)
        let (alongX, alongY) = ((x2 - x1) * unit, (y2 - y1) * unit)
        let square = alongX * alongX + alongY * alongY
        let share = square > 0 ? min(max(((x - startX) * alongX + (y - startY) * alongY) / square, 0), 1) : 0
        let (awayX, awayY) = (x - startX - share * alongX, y - startY - share * alongY)
        return (awayX * awayX + awayY * awayY).squareRoot()
    }
}
