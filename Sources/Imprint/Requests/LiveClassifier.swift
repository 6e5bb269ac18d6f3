internal import Synchronization

/// A classifier that may be swapped while requests run.
///
/// What asks for `current` keeps the classifier that it got until it is done, so that each result is wholly of one model.
public final class LiveClassifier: Sendable {
    private let classifier: Mutex<ImageClassifier>

    /// Begins with a classifier.
    public init(_ classifier: ImageClassifier) { self.classifier = Mutex(classifier) }

    /// The classifier to use from now on.
    public var current: ImageClassifier { classifier.withLock { $0 } }

    /// Puts another classifier in the place of the current one.
    public func replace(with classifier: ImageClassifier) {
        // The one replaced is let go of outside of the lock: its memory may be much.
        let replaced = self.classifier.withLock { current in
            defer { current = classifier }
            return current
        }
        _ = replaced
    }
}
