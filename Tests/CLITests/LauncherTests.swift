import ImprintMPI
import Testing

/// The environment of a process that a launcher of MPI has started.
@Suite struct LauncherTests {
    @Test(
        "The rank and the number of processes come from the launcher",
        arguments: [
            (["OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"], 3, 4),
            (["PMI_RANK": "0", "PMI_SIZE": "2"], 0, 2),
            (["PMIX_RANK": "1", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "8"], 1, 8),
        ])
    func launched(environment: [String: String], rank: Int, count: Int) throws {
        let found = try #require(MPIJob.launched(environment))
        #expect(found.rank == rank && found.count == count)
    }

    @Test(
        "Without several processes, there is no job",
        arguments: [
            [:], ["OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"], ["PMI_RANK": "1"],
            // A job of SLURM that does not use MPI, such as an array.
            ["SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"],
        ])
    func single(environment: [String: String]) {
        #expect(MPIJob.launched(environment) == nil)
    }
}
