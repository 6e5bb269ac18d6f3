/// Returns a number of 64-bit words from the random generator of the system, in hexadecimal.
package func randomToken(words: Int) -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<words).map { _ in
        let digits = String(generator.next() as UInt64, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
}

/// Returns whether two strings are equal, in a time that depends only on their lengths.
package func isEqualInConstantTime(_ found: String, _ expected: String) -> Bool {
    let (found, expected) = (Array(found.utf8), Array(expected.utf8))
    guard found.count == expected.count else { return false }
    return zip(found, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}
