public import Foundation

/// A model whose labels are a Swift type, so that the compiler checks them.
///
/// The plugin ImprintModels generates a conforming type for each model file in a target's resources; see docs/how-to/typed-models.md.
///
/// ```swift
/// let logo = try Logo()
/// switch try await logo.best(in: .file(photo), rule: ConfidenceRule(threshold: .confidence(0.7)))?.label {
/// case .logo: print("The photo shows the logo.")
/// case .noLogo: print("The photo does not show the logo.")
/// case nil: print("The model is not sure.")
/// }
/// ```
public protocol TypedModel: Sendable {
    /// The labels of the model; the raw values are the labels in the model file.
    associatedtype Label: RawRepresentable<String>, CaseIterable, Hashable, Sendable

    /// The classifier that runs the model.
    var classifier: ImageClassifier { get }

    /// Creates a typed model from a classifier.
    /// - Throws: `TypedModelError.labelMismatch` if the labels of the classifier do not match `Label`.
    init(_ classifier: ImageClassifier) throws
}

extension TypedModel {
    /// Creates a typed model from a model file with the same labels, such as a newer version of the model that your app downloaded.
    /// - Parameters:
    ///   - url: The model file.
    ///   - threads: The maximum number of threads for one prediction.
    /// - Throws: The errors of `ImageClassifier.init(contentsOf:threads:averagesFlipped:precision:)`, and `TypedModelError.labelMismatch`.
    public init(contentsOf url: URL, threads: Int = 1) throws {
        try self.init(Self.checked(ImageClassifier(contentsOf: url, threads: threads), named: url.path))
    }

    /// Creates a typed model from a model file in the resources of a bundle.
    /// - Parameters:
    ///   - name: The name of the file, without the extension `imprint`.
    ///   - bundle: The bundle; `Bundle.module` for the resources of a Swift package target.
    ///   - threads: The maximum number of threads for one prediction.
    /// - Throws: `TypedModelError.missingResource` if the bundle does not contain the file, and the errors of `init(contentsOf:threads:)`.
    public init(resource name: String, in bundle: Bundle, threads: Int = 1) throws {
        guard let url = bundle.url(forResource: name, withExtension: "imprint") else {
            throw TypedModelError.missingResource(name: "\(name).imprint", bundle: bundle.bundlePath)
        }
        try self.init(contentsOf: url, threads: threads)
    }

    /// Checks that a classifier has the labels of `Label`, in any order.
    /// - Parameters:
    ///   - classifier: The classifier.
    ///   - name: The name of the classifier in the error.
    /// - Returns: The classifier.
    /// - Throws: `TypedModelError.labelMismatch` if it has other labels.
    public static func checked(
        _ classifier: ImageClassifier, named name: String = "the classifier"
    ) throws(TypedModelError) -> ImageClassifier {
        let (known, found) = (Label.allCases.map(\.rawValue), classifier.labels)
        guard Set(known) == Set(found) else {
            throw .labelMismatch(
                model: name, type: "\(Self.self)", missing: known.filter { !found.contains($0) },
                unknown: found.filter { !known.contains($0) })
        }
        return classifier
    }

    /// Classifies an image.
    /// - Parameters:
    ///   - source: The image.
    ///   - rule: The rule that classifications must meet; the default accepts every classification.
    /// - Returns: One classification for each label that the rule accepts, by descending confidence.
    /// - Throws: The errors of `ClassificationRequest.perform(on:)`.
    public func classify(
        _ source: ImageSource, rule: ConfidenceRule = ConfidenceRule()
    ) async throws -> [TypedClassification<Label>] {
        try await ClassificationRequest(classifier, rule: rule).perform(on: source).map(TypedClassification.init)
    }

    /// Classifies an image and returns the classification with the highest confidence.
    /// - Parameters:
    ///   - source: The image.
    ///   - rule: The rule that the classification must meet.
    /// - Returns: The classification; nil if the rule accepts none of the labels.
    /// - Throws: The errors of `ClassificationRequest.perform(on:)`.
    public func best(
        in source: ImageSource, rule: ConfidenceRule = ConfidenceRule()
    ) async throws -> TypedClassification<Label>? {
        try await classify(source, rule: rule).first
    }
}
