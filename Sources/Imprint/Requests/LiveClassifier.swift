internal import Atomics

/// A holder for a classifier or detector that can be replaced while requests run, for example after a download or a personalization.
///
/// ```swift
/// let live = LiveClassifier(classifier)
/// let request = ClassificationRequest(live)
/// // Later, on any thread:
/// live.replace(with: newClassifier)
/// ```
///
/// Reading and replacing the classifier take no lock. A replacement does not affect images whose classification has already started.
public final class LiveClassifier: Sendable {
    private let published: ManagedAtomic<Published>

    private final class Published: AtomicReference, Sendable {
        let classifier: ImageClassifier
        init(_ classifier: ImageClassifier) { self.classifier = classifier }
    }

    /// Creates a holder with an initial classifier.
    public init(_ classifier: ImageClassifier) { published = ManagedAtomic(Published(classifier)) }

    /// The current classifier.
    public var current: ImageClassifier { published.load(ordering: .acquiring).classifier }

    /// Replaces the current classifier.
    public func replace(with classifier: ImageClassifier) {
        published.store(Published(classifier), ordering: .releasing)
    }
}
