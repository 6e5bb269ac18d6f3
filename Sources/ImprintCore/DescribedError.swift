public import Foundation

/// An error whose `description` is a message for users: the problem, the expected state and the fix.
///
/// Its `localizedDescription`, which apps show, is the same message.
public protocol DescribedError: LocalizedError, CustomStringConvertible {}

extension DescribedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension String {
    /// The text with a full stop at its end.
    package var sentence: String { hasSuffix(".") ? self : self + "." }

    /// The text without a full stop at its end, to be used within a sentence.
    package var clause: String { hasSuffix(".") ? String(dropLast()) : self }
}
