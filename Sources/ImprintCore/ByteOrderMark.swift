extension Collection<UInt8> {
    /// The bytes of a text in UTF-8 without the byte order mark (U+FEFF) at its start, if there is one.
    package var withoutByteOrderMark: SubSequence {
        starts(with: [0xEF, 0xBB, 0xBF]) ? dropFirst(3) : self[startIndex..<endIndex]
    }
}
