import Foundation
import TestSupport
import Testing

/// `imprint train --folds` with several labels per photo.
@Suite struct MultiLabelCrossValidationTests {
    private static let options =
        "--epochs 1 --network logonet --input-size 16 --width 0.125 --batch-size 4 --random-split --threads 1"

    /// Calls `body` with a folder that has a list of twelve photos: four with the labels "bright" and "noisy", four with one of them, four without.
    private func withList(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 12)
            var lines = ["photo,labels"]
            for index in 0..<6 {
                lines.append("photos/bright/\(index).png,\(index < 4 ? "bright;noisy" : "bright")")
                lines.append("photos/dark/\(index).png,\(index < 2 ? "noisy" : "")")
            }
            try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: folder.appending(path: "list.csv"))
            try body(folder)
        }
    }

    @Test("A row for each fold with mAP and F1, the pooled metrics, the predictions and a report") func text() throws {
        try withList { folder in
            let run = try shell(
                "$imprint train list.csv --folds 3 \(Self.options) --predictions p.csv --report r.html", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let rows = run.output.split(separator: "\n")
            #expect(rows[0].split(separator: " ") == ["fold", "photos", "mAP", "micro", "F1", "macro", "F1", "time"])
            #expect(rows.dropFirst().prefix(4).map { $0.split(separator: " ")[0] } == ["1", "2", "3", "all"])
            #expect(Set(rows.prefix(5).map(\.count)).count == 1)
            #expect(rows[5].hasPrefix("mAP 0.") || rows[5].hasPrefix("mAP 1.0000"), "\(rows[5])")
            #expect(rows[5].contains("micro F1 ") && rows[5].contains("pooled over 3 folds; bootstrap over 12 groups"))
            #expect(run.output.contains("standard deviation of the mAP"))
            let table = try String(contentsOf: folder.appending(path: "p.csv"), encoding: .utf8)
            let lines = table.split(separator: "\n").map { $0.split(separator: ",", omittingEmptySubsequences: false) }
            #expect(lines[0].joined(separator: ",") == "seed,fold,file,label,predicted,correct,bright,noisy")
            #expect(lines.count == 13 && lines.allSatisfy { $0.count == 8 })
            #expect(lines.count { $0[3] == "bright;noisy" } == 4 && lines.count { $0[3] == "" } == 4)
            #expect(lines.dropFirst().allSatisfy { ($0[3] == $0[4]) == ($0[5] == "1") })
            let page = try String(contentsOf: folder.appending(path: "r.html"), encoding: .utf8)
            #expect(page.contains("Cross-validation") && page.contains("mean average precision (mAP)"))
        }
    }

    @Test("JSON has the keys of a multi-label evaluation; --keep continues, and --output trains a multi-label model")
    func json() throws {
        try withList { folder in
            let command = "$imprint train list.csv --folds 2 \(Self.options) --keep kept --json"
            let run = try shell("\(command) --output m.imprint && $imprint inspect m.imprint", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let lines = try shell(command, folder: folder).lines
            #expect(lines.map { $0["event"] as? String } == ["fold", "fold", "crossValidation"])
            #expect(lines.map { $0["kept"] as? Bool } == [true, true, nil])
            for fold in lines.prefix(2) {
                for key in ["meanAveragePrecision", "microF1", "macroF1"] { #expect(fold[key] is Double, "\(key)") }
                #expect((fold["meanAveragePrecisionInterval"] as? [Double])?.count == 2)
                #expect((fold["thresholds"] as? [Double])?.count == 2 && fold["logLoss"] == nil)
            }
            let all = try #require(lines.last)
            #expect(all["images"] as? Int == 12 && all["groups"] as? Int == 12 && all["complete"] as? Bool == true)
            for key in ["meanAveragePrecision", "microF1", "macroF1"] {
                #expect(all[key] is Double && (all["\(key)Interval"] as? [Double])?.count == 2, "\(key)")
            }
            #expect(all["foldDeviation"] is Double && all["seedDeviation"] is NSNull)
            #expect(all["labels"] as? [String] == ["bright", "noisy"] && (all["perLabel"] as? [Any])?.count == 2)
            #expect(all["confusion"] == nil && all["accuracy"] is Double)
        }
    }

    @Test("--multi-label trains multi-label models on photos with one label each") func oneLabelEach() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let run = try shell(
                "$imprint train photos --folds 2 --multi-label \(Self.options) --mirror --json", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.lines.last?["microF1"] is Double && run.lines.last?["images"] as? Int == 8)
        }
    }

    @Test("A label in fewer groups than folds is an error that names it") func rareLabel() throws {
        try withList { folder in
            let run = try shell("$imprint train list.csv --folds 7 \(Self.options)", folder: folder)
            #expect(
                run.status == 1 && run.errors.contains("the label \"bright\" has 6 photos in 6 groups"), "\(run.errors)"
            )
        }
    }
}
