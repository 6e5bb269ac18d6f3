internal import CImprintShare

/// A QR code of a text, drawn for a terminal.
package struct QRCode {
    /// The light border that readers need, in modules.
    private static let border = 4
    private let side: Int
    private let modules: [UInt8]

    /// Encodes a text; nil if libqrencode is missing, the build leaves out the package trait `Share`, or the text is too long.
    package init?(_ text: String) {
        var modules = [UInt8](repeating: 0, count: Int(IMPRINT_QR_MAXIMUM_SIDE * IMPRINT_QR_MAXIMUM_SIDE))
        side = Int(imprint_encode_qr(text, &modules))
        guard side > 0 else { return nil }
        self.modules = Array(modules[..<(side * side)])
    }

    /// The width of the drawing in columns.
    package var columns: Int { side + 2 * Self.border }

    private func isDark(_ row: Int, _ column: Int) -> Bool {
        let (row, column) = (row - Self.border, column - Self.border)
        guard 0..<side ~= row, 0..<side ~= column else { return false }
        return modules[row * side + column] == 1
    }

    /// The lines of the drawing, with two modules per character, in black on white on every terminal.
    package var lines: [String] {
        stride(from: 0, to: columns, by: 2).map { row in
            let blocks = (0..<columns).map { column in
                switch (isDark(row, column), isDark(row + 1, column)) {
                case (true, true): "█"
                case (true, false): "▀"
                case (false, true): "▄"
                case (false, false): " "
                }
            }
            return "\u{1B}[38;5;16;48;5;231m\(blocks.joined())\u{1B}[0m"
        }
    }
}
