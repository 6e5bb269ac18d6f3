public import Foundation

/// An error whose `description` is a sentence for people: what was found, what was expected and how to fix it.
///
/// It is `localizedDescription` too, which apps show.
public protocol DescribedError: LocalizedError, CustomStringConvertible {}

extension DescribedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}
