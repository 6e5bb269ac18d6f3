internal import ArgumentParser

@main
enum Main {
    static func main() async {
        Terminal.prepare()
        await ImprintCommand.main()
    }
}

struct ImprintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "imprint",
        abstract: "Train image classifiers on this machine, and run them. No photo leaves it.",
        version: "0.1.0",
        subcommands: [
            TrainCommand.self, EvaluateCommand.self, ClassifyCommand.self, PersonalizeCommand.self, MergeCommand.self,
            InspectCommand.self, CompareCommand.self, ImportCommand.self, ExportCommand.self, AuditCommand.self,
            PrepareCommand.self, DrawCommand.self, AugmentCommand.self, StudioCommand.self, BenchCommand.self,
        ])
}
