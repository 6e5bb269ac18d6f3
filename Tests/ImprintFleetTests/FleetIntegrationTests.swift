import Foundation
import TestSupport
import Testing

/// The Python of an environment with flwr, from the environment variable `IMPRINT_FLOWER`.
private let flower = ProcessInfo.processInfo.environment["IMPRINT_FLOWER"].map { URL(filePath: $0) }

private let imprint = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "imprint")

@Suite(.enabled(if: flower != nil, "IMPRINT_FLOWER does not name a Python with flwr")) struct FleetIntegrationTests {
    @Test(
        "Devices train with a real SuperLink; two are killed, one joins again in the same round, and every byte sent is read"
    )
    func fleet() throws {
        try withTemporaryFolder { folder in
            func path(_ name: String) -> String { folder.appending(path: name).path }
            let draw = try run(
                imprint, ["draw", "two-circles", "--output", path("train"), "--count", "60", "--seed", "1"],
                folder: packageFolder)
            #expect(draw.status == 0, "\(draw.errors)")
            let train = try run(
                imprint,
                [
                    "train", path("train"), "--output", path("base.imprint"), "--input-size", "32", "--width", "0.25",
                    "--epochs", "2", "--seed", "1",
                ])
            #expect(train.status == 0, "\(train.errors)")
            let script = packageFolder.appending(path: "Benchmarks/accuracy/fleet_users.py").path
            let fleet = try run(
                try #require(flower),
                [
                    script, path("base.imprint"), path("fleet"), "--users", "4", "--photos", "6", "--rounds", "3",
                    "--others", "0", "--kill", "--imprint", imprint.path,
                ], folder: packageFolder)
            #expect(fleet.status == 0, "\(fleet.errors)")
            #expect(
                fleet.output.contains("Results and failures by round: [(4, 0), (3, 1), (3, 0)]."), "\(fleet.output)")
            #expect(fleet.output.contains("The script read all of them."), "\(fleet.output)")
            let evaluation = try run(imprint, ["evaluate", path("fleet/fleet.imprint"), path("train"), "--quiet"])
            #expect(evaluation.status == 0, "\(evaluation.errors)")
        }
    }
}
