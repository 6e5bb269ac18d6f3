/// An optional value whose JSON key is always present: `null` if there is no value.
///
/// A plain optional property has no key in JSON if it is `nil`.
@propertyWrapper struct NullIfMissing<Value: Encodable>: Encodable {
    var wrappedValue: Value?

    init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
