internal import CImprintBase
public import Imprint
internal import ImprintCore
internal import ImprintImages
public import ImprintModel
internal import ImprintSynthesis

extension LocalFeatures {
    /// Returns the features that come with Imprint: a part of EfficientNet-Lite0 that was fine-tuned to find logos (docs/explanation/matching.md).
    /// - Throws: `NetworkError.outOfMemory`.
    public static func builtIn() throws -> LocalFeatures {
        let model = try ModelFile(embedded: imprint_logo_features, named: "the built-in logo features")
        guard var features = try LocalFeatures(stored: model) else {
            preconditionFailure("the built-in model does not contain logo features")
        }
        // Fitted by Benchmarks/accuracy/fit_matching.py; docs/results/logo-matching.md names the photos.
        features.calibration = MatchCalibration(midpoint: 0.4397, width: 0.0292, growth: 0.0255)
        return features
    }

    /// Creates the features of a pretrained base model, such as an installed one.
    ///
    /// The confidences of `ArtworkMatcher` are then only estimates, because the features are not calibrated on photos without the logo.
    /// - Parameter base: A convolutional network that accepts colour images of any size, with a feature map of a sixteenth of their size.
    /// - Throws: `ImprintError.noLocalFeatures` if the network has no such feature map, `ImprintError.unsupportedImageSize` if it accepts only
    ///   one size, `ImprintError.outOfMemory` and `NetworkError.outOfMemory`.
    public init(_ base: ModelFile) throws {
        if let stored = try LocalFeatures(stored: base) {
            self = stored
        } else {
            try self.init(base, standardizedOver: Self.patterns())
        }
    }

    /// Returns the features with each channel standardized over drawn patterns.
    ///
    /// Statistics of drawn patterns give better matches than those of photos, perhaps because logos resemble drawings.
    package func standardized() throws -> LocalFeatures { try standardized(over: Self.patterns()) }

    private static func patterns() throws -> [RasterImage] {
        let backdrops = try Backdrops([], size: 224, seed: 1, workers: Workers(1))
        return (0..<100).map { backdrops.background(at: $0, seed: 1) }
    }
}
