internal import ArgumentParser
internal import Imprint
internal import ImprintModel

/// The hyperparameters of training the head of a model on a user's photos.
struct HeadTrainingOptions: ParsableArguments {
    @Option(
        help:
            "The loss weight of replayed training photos relative to the new photos; with a higher weight, the model forgets less and learns less."
    )
    var rehearsalWeight = PersonalizationConfiguration().rehearsalWeight

    @Option(help: "The weight of the L2 penalty on changes to the logits.")
    var penalty = PersonalizationConfiguration().penalty

    @Option(help: "The number of augmented views of each photo, including the photo itself.")
    var views = PersonalizationConfiguration().views

    func apply(to configuration: inout PersonalizationConfiguration) {
        configuration.rehearsalWeight = rehearsalWeight
        configuration.penalty = penalty
        configuration.views = views
    }

    /// Checks that training a model uses the options.
    /// - Parameter path: The model as it was named.
    func check(_ model: ModelFile, _ path: String) throws {
        guard model.detector != nil, views != 1, views != PersonalizationConfiguration().views else { return }
        throw ValidationError(
            "--views: \(path) is a logo detector, which learns from a single view of each photo. Leave it out.")
    }

    /// The names of the options that differ from their defaults.
    var changedNames: [String] {
        let defaults = PersonalizationConfiguration()
        return (rehearsalWeight == defaults.rehearsalWeight ? [] : ["--rehearsal-weight"])
            + (penalty == defaults.penalty ? [] : ["--penalty"]) + (views == defaults.views ? [] : ["--views"])
    }
}
