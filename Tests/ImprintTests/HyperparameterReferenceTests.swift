import Foundation
import Imprint
import ImprintModel
import ImprintTraining
import TestSupport
import Testing

@Suite struct HyperparameterReferenceTests {
    @Test("docs/reference/hyperparameters.md lists every setting of training")
    func settings() throws {
        let page = try String(
            contentsOf: packageFolder.appending(path: "docs/reference/hyperparameters.md"), encoding: .utf8)
        let values: [Any] = [
            ClassifierHyperparameters(), ClassifierConfiguration(), DetectorHyperparameters(), DetectorConfiguration(),
            DetectorPhase(
                steps: 1, learningRate: 0, composites: 1, hardNegatives: 0, background: 0, mined: 0, located: 0),
            PersonalizationConfiguration(), CrossValidation.Options(), FineTuning(),
        ]
        // These have sections, or are not public.
        let others: Set = ["hyperparameters", "fineTuning", "poolSize", "pyramidLevels", "processes"]
        for value in values {
            for name in Mirror(reflecting: value).children.compactMap(\.label) where !others.contains(name) {
                #expect(
                    page.contains("`\(name)`") || page.contains("`fineTuning.\(name)`"),
                    "\(type(of: value)) has \(name)")
            }
        }
    }
}
