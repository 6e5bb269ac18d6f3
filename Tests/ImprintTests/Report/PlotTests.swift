import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

@Suite("Plot") struct PlotTests {
    @Test(
        "Steps are 1, 2 or 5 times a power of ten",
        arguments: [
            (0.0013, 0.002), (0.1, 0.1), (0.11, 0.2), (0.2, 0.2), (0.3, 0.5), (0.7, 1), (1, 1), (2.1, 5), (5, 5),
            (6, 10),
            (123, 200), (1e30, 1e30),
        ])
    func steps(rough: Double, step: Double) {
        #expect(abs(Plot.Axis.niceStep(rough) / step - 1) < 1e-9)
    }

    @Test(
        "An axis of amounts starts at 0, includes the maximum and has a few ticks at round values",
        arguments: [0.00002, 0.013, 0.69, 1, 2.3, 17, 999, 1e7])
    func amounts(maximum: Double) {
        let axis = Plot.Axis.amounts(upTo: maximum)
        #expect(axis.range.lowerBound == 0 && axis.range.upperBound >= maximum * 0.999999)
        #expect((3...6).contains(axis.ticks.count))
        #expect(axis.ticks.allSatisfy { axis.text($0).count <= 6 }, "\(axis.ticks.map(axis.text))")
    }

    @Test("Without a positive finite maximum the axis is 0 to 1", arguments: [0, -1, .nan, Double.infinity])
    func noAmounts(maximum: Double) {
        #expect(Plot.Axis.amounts(upTo: maximum).range == 0...1)
    }

    @Test("An axis of epochs has ticks at 1 and at a few round values", arguments: [1, 2, 3, 7, 8, 60, 500, 100_000])
    func epochs(count: Int) {
        let axis = Plot.Axis.epochs(count, "epoch")
        #expect(axis.ticks.first == 1 && (axis.ticks.last ?? 0) <= Double(count))
        #expect(axis.ticks.count <= 9 && Set(axis.ticks).count == axis.ticks.count)
        if count > 1 { #expect(axis.range == 1...Double(count)) }
        if count <= 7 { #expect(axis.ticks.count == count) }
    }

    @Test(
        "An axis of percentages starts above 0 if all values are high",
        arguments: [(0.1, 0.0), (0.5, 0.5), (0.79, 0.5), (0.93, 0.8)])
    func percentages(minimum: Double, start: Double) {
        let axis = Plot.Axis.percentages(from: minimum)
        #expect(axis.range == start...1 && axis.ticks.count == (start == 0.8 ? 5 : 6))
        #expect(axis.text(axis.ticks[0]).hasSuffix("%"))
    }

    @Test("Values outside the range of an axis are drawn at its ends") func clamped() {
        let plot = Plot(x: .epochs(3, "epoch"), y: .percentages())
        #expect(plot.row(7) == plot.row(1) && plot.row(-1) == plot.row(0) && plot.column(9) == plot.column(3))
    }

    @Test("Percentages are never rounded to 0 % or 100 %, and large counts are grouped") func formatting() {
        #expect(
            wholePercent(0) == "0\u{a0}%" && wholePercent(0.0001) == "<1\u{a0}%" && wholePercent(0.5) == "50\u{a0}%")
        #expect(wholePercent(0.9999) == ">99\u{a0}%" && wholePercent(1) == "100\u{a0}%")
        #expect(percent(nil as Double?) == "–")
        #expect(grouped(0) == "0" && grouped(999) == "999" && grouped(1000) == "1\u{202f}000")
        #expect(grouped(-1_234_567) == "-1\u{202f}234\u{202f}567")
        #expect(groupedCount(1, "photo") == "1 photo" && groupedCount(2000, "photo") == "2\u{202f}000 photos")
    }
}
