/// The order of Unicode scalars, which is that of the UTF-8 bytes and, unlike that of a language, never changes.
package func precedes(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
}
