internal import Atomics

/// A classifier that may be swapped while requests run.
///
/// What asks for `current` keeps the classifier that it got until it is done, so that each result is wholly of one model.
public final class LiveClassifier: Sendable {
    private let published: ManagedAtomic<Published>

    private final class Published: AtomicReference, Sendable {
        let classifier: ImageClassifier
        init(_ classifier: ImageClassifier) { self.classifier = classifier }
    }

    /// Begins with a classifier.
    public init(_ classifier: ImageClassifier) { published = ManagedAtomic(Published(classifier)) }

    /// The classifier to use from now on.
    public var current: ImageClassifier { published.load(ordering: .acquiring).classifier }

    /// Puts another classifier in the place of the current one.
    public func replace(with classifier: ImageClassifier) {
        published.store(Published(classifier), ordering: .releasing)
    }
}
