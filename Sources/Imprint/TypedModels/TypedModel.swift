public import Foundation

/// A model whose labels are a type of their own, so that the compiler knows them.
///
/// The plugin ImprintModels makes such a type of every model file in a target's resources; docs/typed-models.md says how.
///
/// ```swift
/// let logo = try Logo()
/// switch try await logo.best(in: .file(photo), rule: ConfidenceRule(threshold: .confidence(0.7)))?.label {
/// case .logo: print("That is it.")
/// case .noLogo: print("It is not there.")
/// case nil: print("I am not sure.")
/// }
/// ```
public protocol TypedModel: Sendable {
    /// What the model tells apart; raw values are the labels as the model file has them.
    associatedtype Label: RawRepresentable<String>, CaseIterable, Hashable, Sendable

    /// The model, ready to use.
    var classifier: ImageClassifier { get }

    /// Uses a classifier that there is already.
    /// - Throws: `TypedModelError.otherLabels` if its labels are not those of `Label`.
    init(_ classifier: ImageClassifier) throws
}

extension TypedModel {
    /// Reads a model file with the same labels, as one that was trained again and downloaded.
    /// - Parameter threads: How many threads one classification may use.
    /// - Throws: What reading a model file throws, and `TypedModelError.otherLabels`.
    public init(contentsOf url: URL, threads: Int = 1) throws {
        try self.init(Self.checked(ImageClassifier(contentsOf: url, threads: threads), named: url.path))
    }

    /// Reads the model file among a module's resources.
    /// - Parameters:
    ///   - name: The name of the file, without the ending `.imprint`.
    ///   - bundle: The resources, `Bundle.module` in a package.
    ///   - threads: How many threads one classification may use.
    /// - Throws: `TypedModelError.noResource` if it is not there, and what `init(contentsOf:threads:)` throws.
    public init(resource name: String, in bundle: Bundle, threads: Int = 1) throws {
        guard let url = bundle.url(forResource: name, withExtension: "imprint") else {
            throw TypedModelError.noResource(name: "\(name).imprint", bundle: bundle.bundlePath)
        }
        try self.init(contentsOf: url, threads: threads)
    }

    /// A classifier whose labels are those of `Label`, in any order.
    /// - Parameter name: What an error calls it.
    /// - Throws: `TypedModelError.otherLabels` if it has others.
    public static func checked(
        _ classifier: ImageClassifier, named name: String = "the classifier"
    ) throws(TypedModelError) -> ImageClassifier {
        let (known, found) = (Label.allCases.map(\.rawValue), classifier.labels)
        guard Set(known) == Set(found) else {
            throw .otherLabels(
                model: name, type: "\(Self.self)", missing: known.filter { !found.contains($0) },
                unknown: found.filter { !known.contains($0) })
        }
        return classifier
    }

    /// What is in an image, best first: one observation for each label that the rule accepts, by default for every label.
    /// - Throws: What `ClassificationRequest.perform(on:)` throws.
    public func classify(
        _ source: ImageSource, rule: ConfidenceRule = ConfidenceRule()
    ) async throws -> [TypedObservation<Label>] {
        try await ClassificationRequest(classifier, rule: rule).perform(on: source).map(TypedObservation.init)
    }

    /// The best of what is in an image; nil if the rule accepts none of the labels.
    /// - Throws: What `ClassificationRequest.perform(on:)` throws.
    public func best(
        in source: ImageSource, rule: ConfidenceRule = ConfidenceRule()
    ) async throws -> TypedObservation<Label>? {
        try await classify(source, rule: rule).first
    }
}
