internal import ImprintCore

/// Returns a row of CSV (RFC 4180) without its line feed; fields with a comma, a quotation mark or a line break are quoted.
func csvRow(_ fields: [String]) -> String { fields.map(quoted).joined(separator: ",") }

private func quoted(_ field: String) -> String {
    let special = "\",\n\r".unicodeScalars
    guard field.unicodeScalars.contains(where: special.contains) else { return field }
    let escaped = field.replacingScalars { $0 == "\"" ? "\"\"" : nil }
    return "\"\(escaped)\""
}
