internal import ArgumentParser
internal import Imprint

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

    /// The names of the options that differ from their defaults.
    var changedNames: [String] {
        let defaults = PersonalizationConfiguration()
        return (rehearsalWeight == defaults.rehearsalWeight ? [] : ["--rehearsal-weight"])
            + (penalty == defaults.penalty ? [] : ["--penalty"]) + (views == defaults.views ? [] : ["--views"])
    }
}
