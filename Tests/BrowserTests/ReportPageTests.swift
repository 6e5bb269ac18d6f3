import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

/// The training report in a browser.
@Suite("Report in a browser", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct ReportPageTests {
    /// The visible values of a page.
    private struct Seen: Decodable {
        let points: [String: Int]
        let cells: [Int]
        let total: Int
        let images: [Int]
        let missing: Int
        let overflow: Int
        let background: String
        let labels: [String]
        let headings: [Int]
        let unnamed: [String]
        let faint: [String]
        let navigation: String
    }

    private static let expressions = [
        "points": """
        Object.fromEntries([...document.querySelectorAll('#curves .chart')].flatMap(chart => [...chart.querySelectorAll('g')]
          .map(line => [chart.classList[1] + ' ' + line.classList[0], line.querySelectorAll('circle > title').length])))
        """,
        "cells": """
        [...document.querySelectorAll('.confusion tbody td:not(.sum)')].map(cell =>
          Number(cell.querySelector('b').textContent.replace(/\\D/g, '')))
        """,
        "total": "Number(document.querySelector('.confusion tfoot td:last-child').textContent.replace(/\\D/g, ''))",
        "images": "[...document.images].map(image => image.complete ? image.naturalWidth : 0)",
        "missing": "document.querySelectorAll('.missing').length",
        "overflow": "document.scrollingElement.scrollWidth - innerWidth",
        "background": "getComputedStyle(document.body).backgroundColor",
        "labels": "[...document.querySelectorAll('.numbers tbody th')].map(head => head.textContent)",
        "headings": "[...document.querySelectorAll('h1, h2, h3, h4')].map(heading => Number(heading.tagName[1]))",
        "unnamed": """
        [...document.querySelectorAll('img:not([alt]), img[alt=""], svg:not([aria-label]), th:not([scope]), html:not([lang])')]
          .map(element => element.outerHTML.slice(0, 200))
        """,
        "faint": Browser.faint,
        "navigation": "getComputedStyle(document.querySelector('nav')).display",
    ]

    /// A training run for the report.
    struct Run: Sendable, CustomTestStringConvertible {
        let labels: [String]
        let epochs: Int
        let mistakes: Int
        let images = 60

        var testDescription: String { "\(labels.count) labels" }
    }

    private static let awkward = [
        "<b>&\"x", "ein ziemlich langer Name ohne Ende", "Donaudampfschifffahrtsgesellschaftskapitänsmütze",
        "قطة صغيرة", "猫",
        "</style><script>alert(1)</script>",
    ]

    static let runs = [
        Run(labels: awkward, epochs: 7, mistakes: 5), Run(labels: ["a", "b"], epochs: 1, mistakes: 0),
        Run(labels: awkward + (0..<19).map { "label \($0)" }, epochs: 500, mistakes: 30),
    ]

    private static let views = [
        Browser.View(), Browser.View(width: 390), Browser.View(isDark: true),
        Browser.View(width: 390, runsScripts: false),
        Browser.View(width: 700, isDark: true, isPrinted: true),
    ]

    /// Writes the report of a run with random images; the file of the most confident mistake is missing.
    private func writeReport(_ run: Run, to folder: URL) throws -> URL {
        let network = try Network.named("logonet", labels: run.labels.count, inputSize: 16, width: 0.125)
        let progress = { (epoch: Int) in Float(epoch) / Float(run.epochs) }
        var hyperparameters = ClassifierHyperparameters()
        hyperparameters.epochs = run.epochs
        let record = TrainingRecord(
            .classifier(hyperparameters),
            trainingImages: Dictionary(uniqueKeysWithValues: run.labels.enumerated().map { ($1, 10 * ($0 + 1)) }),
            history: (1...run.epochs).map { epoch in
                EpochMetrics(
                    epoch: epoch, loss: 2 - progress(epoch), accuracy: progress(epoch),
                    validationLoss: 2.5 - progress(epoch), validationAccuracy: 0.9 * progress(epoch),
                    learningRate: 0.02 * (1 - progress(epoch)))
            })
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: run.labels,
            preprocessing: Preprocessing(width: 16, height: 16), training: record)
        let results = try (0..<run.images).map { index in
            var stream = RandomStream(seed: 5, "picture", index)
            var image = RasterImage(width: 48, height: 36)
            for sample in image.samples.indices { image.samples[sample] = UInt8(stream.index(below: 256)) }
            let file = folder.appending(path: "<i>\(index)&\"\u{202e}.png")
            if index > 0 { try ImageFile.write(image, to: file) }
            let label = index % run.labels.count
            var confidences = (0..<run.labels.count).map { _ in 0.1 * stream.uniform() }
            confidences[(label + (index < run.mistakes ? 1 : 0)) % run.labels.count] = 1 - 0.01 * Float(index)
            return Evaluation.Result(url: file, label: label, confidences: confidences)
        }
        let page = folder.appending(path: "report.html")
        try Report(
            model, evaluation: .singleLabel(Evaluation(labels: run.labels, results: results, skipped: [])),
            command: "imprint train \(String(repeating: "a-long-name/", count: 20)) --output <m>", seconds: 12
        ).write(to: page)
        return page
    }

    @Test("The whole report is readable at any width, in light and dark mode", arguments: runs, views)
    func page(run: Run, view: Browser.View) throws {
        try withTemporaryFolder { folder in
            let page = try writeReport(run, to: folder)
            let sight: Browser.Sight<Seen> = try Browser.look(at: page, view, for: Self.expressions)
            let seen = sight.values
            #expect(sight.console == [] && sight.requests == [page.absoluteString])
            #expect(
                seen.points == [
                    "loss training": run.epochs, "loss validation": run.epochs, "accuracy training": run.epochs,
                    "accuracy validation": run.epochs, "learning-rate rate": run.epochs,
                ])
            #expect(seen.total == run.images && seen.cells.reduce(0, +) == run.images)
            let side = run.labels.count > 20 ? 21 : run.labels.count
            #expect(seen.cells.count == side * side)
            // Each entry has a photo and its saliency map. A report without mistakes shows the twelve least confident photos.
            let shown = run.mistakes == 0 ? 12 : min(run.mistakes, 24)
            #expect(seen.missing == (run.mistakes == 0 ? 0 : 1))
            #expect(seen.images.count == 2 * (shown - seen.missing) && seen.images.allSatisfy { $0 == 160 })
            #expect(seen.overflow <= 0)
            #expect(seen.labels == run.labels)
            #expect(seen.headings.first == 1 && seen.headings.count { $0 == 1 } == 1)
            #expect(zip(seen.headings, seen.headings.dropFirst()).allSatisfy { $1 <= $0 + 1 })
            #expect(seen.unnamed == [] && seen.faint == [])
            #expect(seen.navigation == (view.isPrinted ? "none" : "block"))
            let background =
                view.isPrinted ? "rgb(255, 255, 255)" : view.isDark ? "rgb(22, 25, 29)" : "rgb(253, 252, 250)"
            #expect(seen.background == background)
        }
    }
}
