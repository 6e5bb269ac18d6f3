/// Chooses the number of threads for repeated runs of the same work by the duration of earlier runs.
///
/// The threads of a run meet at many barriers. If another program uses one of the cores, the thread on that core is late at every barrier, and
/// all others wait: then fewer threads can be faster, and they leave the core to the other program. The results do not depend on the number of
/// threads, so it can change between runs.
///
/// Durations are averaged over windows of runs. If threads slept at barriers for more than `suspiciousShare` of a window, the next window tries
/// fewer threads; below the limit, a window from time to time tries more. The faster number stays. A trial with fewer threads succeeds only if
/// it is faster than the windows before and after it. Otherwise, a disturbance that had just ended would look like a gain. While no other
/// program uses the cores, threads hardly sleep at barriers, so there are no trials.
struct ThreadAdaptation {
    /// The shortest window: many time slices of the scheduler, in which a delayed thread is stopped and continued.
    static let windowSeconds = 0.1
    static let fewestRuns = 3
    /// The share of the time of all threads that they may sleep at barriers before fewer threads are tried.
    static let suspiciousShare = 0.15
    /// A number of threads replaces another only if it takes at most this part of the time.
    static let requiredRatio = 0.95
    /// A trial ends early if its runs take more than this multiple of the time.
    static let abortRatio = 1.5
    /// The time between two trials.
    ///
    /// It doubles after each trial, until threads hardly sleep with the maximum number.
    static let pauseSeconds = 0.5...4.0
    /// The minimum time between trials in windows, because windows of long runs are long.
    static let pauseWindows = 5.0

    /// The numbers of threads to choose from: all, all but one, and then halves down to one.
    let levels: [Int]
    private var level = 0
    /// The level that the current window tries.
    private var trial: Int?
    /// A level with fewer threads that was faster than the window before, and its average duration; the current window confirms it.
    private var candidate: (level: Int, mean: Double)?
    private var window = Window()
    /// The average duration of a run in the last window of `level`.
    private var lastMean = 0.0
    private var elapsedSeconds = 0.0
    private var nextTrial = 0.0
    private var pause = pauseSeconds.lowerBound

    private struct Window {
        var runCount = 0
        var seconds = 0.0
        var sleepSeconds = 0.0

        var mean: Double { seconds / Double(runCount) }
    }

    /// - Parameter limit: The maximum number of threads, at least 1.
    init(limit: Int) {
        var levels = limit > 2 ? [limit, limit - 1] : [limit]
        var count = limit / 2
        while count >= 1 {
            if count < levels[levels.count - 1] { levels.append(count) }
            count /= 2
        }
        self.levels = levels
    }

    /// The number of threads of the next run.
    var threads: Int { levels[trial ?? level] }

    /// The amount of work of the next run; a change starts a new window.
    var workSize = 0 {
        didSet {
            guard workSize != oldValue else { return }
            // Without the confirmation, the trial is repeated soon.
            if candidate != nil { (nextTrial, pause) = (elapsedSeconds, Self.pauseSeconds.lowerBound) }
            (window, trial, candidate) = (Window(), nil, nil)
        }
    }

    /// Records a run with the number of threads `threads`.
    /// - Parameters:
    ///   - seconds: The duration of the run.
    ///   - sleepSeconds: The sum of the times that the threads slept at barriers.
    mutating func record(seconds: Double, sleepSeconds: Double) {
        window.runCount += 1
        window.seconds += seconds
        window.sleepSeconds += sleepSeconds
        elapsedSeconds += seconds
        let isComplete = window.seconds >= Self.windowSeconds && window.runCount >= Self.fewestRuns
        if let trial {
            // A trial that is clearly slower ends early.
            let isSlow = window.seconds >= Self.windowSeconds / 5 && window.mean > Self.abortRatio * lastMean
            guard isComplete || isSlow else { return }
            finish(trial)
        } else {
            guard isComplete else { return }
            finishWindow()
        }
        window = Window()
    }

    private mutating func finish(_ trial: Int) {
        let isFaster = window.mean <= Self.requiredRatio * lastMean
        if isFaster, trial > level {
            candidate = (trial, window.mean)
        } else if isFaster {
            level = trial
        }
        self.trial = nil
        nextTrial = elapsedSeconds + max(pause, Self.pauseWindows * window.seconds)
        pause = min(2 * pause, Self.pauseSeconds.upperBound)
    }

    private mutating func finishWindow() {
        lastMean = window.mean
        if let candidate {
            self.candidate = nil
            if candidate.mean <= Self.requiredRatio * lastMean { level = candidate.level }
            return
        }
        let sleepsLong = window.sleepSeconds > Self.suspiciousShare * window.seconds * Double(threads)
        if level == 0, !sleepsLong { pause = Self.pauseSeconds.lowerBound }
        guard elapsedSeconds >= nextTrial else { return }
        if sleepsLong, level + 1 < levels.count {
            trial = level + 1
        } else if level > 0 {
            trial = level - 1
        }
    }
}
